// Thousands of connections of somebody without a key, from another process, at all that a port
// leaves open while its peers exchange messages.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/transport/ucx/port_address.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gtest/gtest.h"
#include "tests/support/child_process.h"
#include "tests/support/number_argument.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// The ports at which this process listens.
std::vector<std::string> OpenPorts() {
  std::vector<std::string> ports;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) continue;
    SocketAddress address;
    address.length = sizeof address.storage;
    auto* generic = reinterpret_cast<sockaddr*>(&address.storage);
    if (listens == 0 || getsockname(descriptor, generic, &address.length) != 0) continue;
    if (address.storage.ss_family == AF_INET) ports.push_back(absl::StrCat(PortOf(address)));
  }
  return ports;
}

class PortStrangersTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PortStrangersTest, Flood_WhilePeersExchange_NothingIsLost) {
  UcxTransportOptions options;
  options.transports = GetParam();
  ASSERT_OK_AND_ASSIGN(const auto transport, NewUcxTransport(options));
  ASSERT_OK_AND_ASSIGN(const auto port, transport->NewPort({}));
  PortPeer peer{.number = 1, .name = "child", .token = {}};
  peer.token.fill(0x5a);
  ASSERT_OK(port->Expect(peer));
  ChildProcess honest({WEFT_PORT_PROCESS, "1", "127.0.0.1", GetParam()});
  ASSERT_TRUE(honest.running());
  ASSERT_OK(honest.ReadLine(Late()));
  std::atomic<bool> stop = false;
  std::thread driver([&] { (void)port->Receive({.kinds = 0}, Late(), &stop); });
  EXPECT_EQ(*honest.Ask(absl::StrCat("connect 0 ", port->address()), Late()), "OK");
  ASSERT_OK(port->AwaitPeers(Late()));
  port->StopListening();  // as a worker does before the first program
  const int64_t before = ResidentBytes();

  std::vector<std::string> arguments = {WEFT_PORT_STRANGER, port->address(), GetParam(), "3000"};
  const std::vector<std::string> open = OpenPorts();
  EXPECT_FALSE(open.empty());  // UCX listens for more of its own connections
  arguments.insert(arguments.end(), open.begin(), open.end());
  ChildProcess stranger(arguments);
  ASSERT_TRUE(stranger.running());
  constexpr int32_t kMessages = 3000;
  honest.Write(absl::StrCat("echo 0 ", kMessages));
  for (int32_t id = 0; id < kMessages; ++id) {
    const Payload sent(id % 10 == 0 ? 100000 : 500, static_cast<uint8_t>(id));
    ASSERT_OK(SendBytes(*port, 1, {.id = id}, sent));
    ASSERT_OK_AND_ASSIGN(const Message back,
                         port->Receive({.kinds = KindBit(1), .id = id}, Late()));
    ASSERT_EQ(back.payload, sent);
  }
  EXPECT_EQ(*honest.ReadLine(Late()), "OK");
  ASSERT_OK_AND_ASSIGN(const std::string accepted, stranger.ReadLine(Late()));
  EXPECT_GT(NumberArgument<int>(accepted.c_str()), 0);
  stop = true;
  port->Wake();
  driver.join();

  EXPECT_OK(port->failure());
  EXPECT_LT(ResidentBytes() - before, int64_t{64} << 20);
  EXPECT_EQ(port->traffic()[0].Total().messages_received, kMessages);
}

INSTANTIATE_TEST_SUITE_P(Ucx, PortStrangersTest, ::testing::Values("", "tcp"),
                         [](const auto& chosen) {
                           return chosen.param.empty() ? "memory" : "tcp";
                         });

}  // namespace
}  // namespace weft
