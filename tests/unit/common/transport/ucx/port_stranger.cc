// Somebody without a key: connects to a port again and again, by UCX and without, and says what he
// likes. port_stranger ADDRESS UCX_TLS COUNT PORT...; prints how often a plain socket got through
// to one of the ports.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "common/base/random.h"
#include "common/transport/ucx/ucx_worker.h"
#include "tests/support/number_argument.h"

namespace weft {
namespace {

// Connections of one of its workers.
constexpr int kOfOneWorker = 50;

class Stranger final : public UcxWorkerEvents {
 public:
  Stranger(const std::string& address, const std::string& transports) : pool_(0) {
    const bool tcp = transports == "tcp";
    const auto context =
        UcxContext::Create(tcp ? UcxMode::kRemote : UcxMode::kLocal, transports, "lo", false);
    if (!context.ok()) return;
    auto worker = UcxWorker::Create(*context, {*ParseSocketAddress("127.0.0.1:0")}, *this, pool_);
    if (!worker.ok()) return;
    worker_ = *std::move(worker);
    const auto victim = ParsePortAddress(address);
    if (victim.ok()) address_ = *ParseSocketAddress(tcp ? victim->remote : victim->local);
  }

  bool usable() const { return worker_ != nullptr; }
  void Progress() { (void)worker_->Progress(); }

  void Connect(int what) {
    const auto connection = worker_->Connect(address_);
    if (!connection.ok()) return;
    const auto say = [&](unsigned id, absl::Span<const uint8_t> bytes) {
      (void)worker_->SendControl(**connection, id, bytes);
    };
    const auto hello = EncodeHello({.from = 1, .to = 0});
    if (what == 1) say(kHelloMessage, hello);  // and answers the challenge wrongly
    if (what == 2) say(kHelloMessage, absl::MakeConstSpan(hello).subspan(0, 30));
    if (what == 3) say(kProofMessage, EncodeProof({}));
    if (what == 4) (void)worker_->SendData(**connection, {}, Payload(1000));
    if (what == 5) (void)worker_->SendData(**connection, {}, Payload(2000000));
  }

  void OnHello(UcxConnection&, absl::Span<const uint8_t>) override {}
  void OnControl(UcxConnection& connection, unsigned id, absl::Span<const uint8_t>) override {
    if (id == kChallengeMessage) {
      (void)worker_->SendControl(connection, kProofMessage, EncodeProof({}));
    }
  }
  void OnIntrusion(UcxConnection&) override {}
  void OnDrop(UcxConnection&, Refusal) override {}
  void OnMessage(UcxConnection&, absl::Span<const uint8_t>, Payload) override {}
  std::optional<int64_t> OnOffer(UcxConnection&, absl::Span<const uint8_t>, int64_t) override {
    return std::nullopt;
  }
  void OnFetched(int64_t, Payload) override {}
  void OnFetchFailed(int64_t, const absl::Status&) override {}
  void OnSent(UcxConnection&) override {}
  void OnLost(UcxConnection& connection, const absl::Status&) override {
    worker_->Close(connection);
  }

 private:
  PayloadPool pool_;
  SocketAddress address_;
  std::unique_ptr<UcxWorker> worker_;
};

// Whether somebody accepted.
bool SendNoise(int port, Random& random) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return false;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool accepted =
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  Payload bytes(random.Between(0, 300));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  if (accepted) (void)!send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  close(connection);
  return accepted;
}

int Run(int argc, char** argv) {
  if (argc < 4) return 2;
  const int count = NumberArgument<int>(argv[3]);
  Random random(7);
  int64_t accepted = 0;
  for (int done = 0; done < count; done += kOfOneWorker) {
    Stranger stranger(argv[1], argv[2]);
    if (!stranger.usable()) return 1;
    for (int i = 0; i < kOfOneWorker; ++i) {
      stranger.Connect((done + i) % 6);
      for (int round = 0; round < 20; ++round) stranger.Progress();
      for (int port = 4; port < argc; ++port) {
        accepted += SendNoise(NumberArgument<int>(argv[port]), random) ? 1 : 0;
      }
    }
  }
  std::cout << accepted << '\n' << std::flush;
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Run(argc, argv); }
