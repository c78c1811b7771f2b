// A process with one message port, driven by lines on its standard input; answers each with one
// line. For tests that kill, stop and separate processes.
//
//   port_process NUMBER BIND_HOST [UCX_TLS]    first prints the port's address
//
//   expect N              connect N ADDRESS     await MILLISECONDS
//   send N ID BYTES       receive N ID MILLISECONDS      echo N COUNT
//   traffic               TRANSPORT SENT RECEIVED of the lowest peer
#include <atomic>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "tests/support/number_argument.h"

namespace weft {
namespace {

Clock::TimePoint In(int64_t milliseconds) {
  return SystemClock().Now() + std::chrono::milliseconds(milliseconds);
}

PortPeer Peer(int32_t number) {
  PortPeer peer{.number = number, .name = absl::StrCat("w", number), .token = {}};
  peer.token.fill(0x5a);
  return peer;
}

absl::Status Echo(MessagePort& port, int32_t peer, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    absl::StatusOr<Message> message = port.Receive({.kinds = KindBit(0), .peer = peer}, In(60000));
    if (!message.ok()) return message.status();
    message->header.kind = 1;
    const absl::Status sent = SendBytes(port, peer, message->header, message->payload);
    if (!sent.ok()) return sent;
  }
  return absl::OkStatus();
}

absl::Status Run(MessagePort& port, const std::string& command, std::istringstream& words) {
  int32_t peer = -1;
  if (command == "await") {
    int64_t milliseconds = 0;
    words >> milliseconds;
    return port.AwaitPeers(In(milliseconds));
  }
  words >> peer;
  if (command == "expect") return port.Expect(Peer(peer));
  if (command == "connect") {
    std::string address;
    std::getline(words >> std::ws, address);
    return port.Connect(Peer(peer), address, In(30000));
  }
  int32_t id = 0;
  int64_t amount = 0;
  words >> id >> amount;
  if (command == "send") {
    return SendBytes(port, peer, {.kind = 0, .step = 0, .id = id}, Payload(amount));
  }
  if (command == "receive") {
    return port.Receive({.peer = peer, .id = id}, In(amount)).status();
  }
  if (command == "echo") return Echo(port, peer, id);
  return absl::UnimplementedError(command);
}

int Serve(int argc, char** argv) {
  if (argc < 3) return 2;
  UcxTransportOptions options;
  options.bind_host = argv[2];
  options.transports = argc > 3 ? argv[3] : "";
  const auto transport = NewUcxTransport(options);
  if (!transport.ok()) {
    std::cout << transport.status() << '\n' << std::flush;
    return 1;
  }
  PortOptions port_options;
  port_options.own_number = NumberArgument<int>(argv[1]);
  const auto port = (*transport)->NewPort(port_options);
  if (!port.ok()) {
    std::cout << port.status() << '\n' << std::flush;
    return 1;
  }
  std::cout << (*port)->address() << '\n' << std::flush;
  // As in a worker, some thread always waits in the port.
  std::atomic<bool> stop = false;
  std::thread driver([&] { (void)(*port)->Receive({.kinds = 0}, In(1000000), &stop); });
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "traffic") {
      const PeerTraffic traffic = (*port)->traffic().at(0);
      std::cout << traffic.transport << " " << traffic.Total().messages_sent << " "
                << traffic.Total().messages_received << '\n'
                << std::flush;
    } else {
      std::cout << Run(**port, command, words) << '\n' << std::flush;
    }
  }
  stop = true;
  (*port)->Wake();
  driver.join();
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Serve(argc, argv); }
