// Round trips of small messages and the rate of large ones over connected ports, by transport. Two
// threads of one process, each with a port of its own.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "common/transport/loopback/loopback_network.h"
#include "common/transport/ucx/ucx_transport.h"

namespace weft {
namespace {

enum Medium : int64_t { kLoopback, kUcxMemory, kUcxTcp };

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(600); }

// Two connected ports; the second echoes messages of kind 0 and swallows those of kind 1, of which
// the last is answered.
class Pair {
 public:
  explicit Pair(int64_t medium) {
    if (!Make(medium)) return;
    usable_ = true;
    thread_ = std::thread([this] { Answer(); });
  }
  ~Pair() {
    if (!usable_) return;
    stop_ = true;
    ports_[1]->Wake();
    thread_.join();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  bool usable() const { return usable_; }
  MessagePort& port() { return *ports_[0]; }
  std::string transport() { return ports_[0]->traffic()[0].transport; }

 private:
  bool Make(int64_t medium) {
    for (int32_t number = 0; number < 2; ++number) {
      if (medium == kLoopback) {
        transports_[number] = network_.NewTransport();
      } else {
        UcxTransportOptions options;
        options.transports = medium == kUcxTcp ? "tcp" : "";
        auto transport = NewUcxTransport(options);
        if (!transport.ok()) return false;
        transports_[number] = *std::move(transport);
      }
      auto port = transports_[number]->NewPort({.own_number = number, .limits = {}});
      if (!port.ok()) return false;
      ports_[number] = *std::move(port);
    }
    if (!ports_[1]->Expect({.number = 0, .name = "a", .token = {}}).ok()) return false;
    std::thread await([this] { (void)ports_[1]->AwaitPeers(Late()); });
    const bool connected =
        ports_[0]
            ->Connect({.number = 1, .name = "b", .token = {}}, ports_[1]->address(), Late())
            .ok();
    await.join();
    return connected;
  }

  void Answer() {
    while (true) {
      absl::StatusOr<Message> message = ports_[1]->Receive({}, Late(), &stop_);
      if (!message.ok()) return;
      const bool echo = message->header.kind == 0;
      const absl::Span<const uint8_t> all = message->payload;
      if (message->header.kind != 1 &&
          !SendBytes(*ports_[1], 0, message->header, echo ? all : all.subspan(0, 1)).ok()) {
        return;
      }
      ports_[1]->Recycle(std::move(message->payload));
    }
  }

  LoopbackNetwork network_;
  std::unique_ptr<Transport> transports_[2];
  std::unique_ptr<MessagePort> ports_[2];
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  bool usable_ = false;
};

void RoundTrip(benchmark::State& state) {
  Pair pair(state.range(0));
  if (!pair.usable()) {
    state.SkipWithError("this transport cannot be used here");
    return;
  }
  const Payload payload(state.range(1));
  for (auto _ : state) {
    if (!SendBytes(pair.port(), 1, {}, payload).ok() || !pair.port().Receive({}, Late()).ok()) {
      state.SkipWithError("the other port is lost");
      return;
    }
  }
  state.SetLabel(pair.transport());
}

// Time per message of a megabyte that goes one way, eight at a time, acknowledged by a byte.
void OneWay(benchmark::State& state) {
  Pair pair(state.range(0));
  if (!pair.usable()) {
    state.SkipWithError("this transport cannot be used here");
    return;
  }
  const Payload payload(state.range(1));
  constexpr int kWindow = 8;
  for (auto _ : state) {
    for (int32_t id = 0; id < kWindow; ++id) {
      const uint32_t kind = id == kWindow - 1 ? 2 : 1;
      if (!SendBytes(pair.port(), 1, {.kind = kind, .step = 0, .id = id}, payload).ok()) return;
    }
    if (!pair.port().Receive({}, Late()).ok()) return;
  }
  state.SetBytesProcessed(state.iterations() * kWindow * state.range(1));
  state.SetLabel(pair.transport());
}

void Register() {
  for (const int64_t medium : {kLoopback, kUcxMemory, kUcxTcp}) {
    for (const int64_t bytes : {64, 1024, 16384}) {
      benchmark::RegisterBenchmark("round_trip", RoundTrip)->Args({medium, bytes})->UseRealTime();
    }
    benchmark::RegisterBenchmark("one_way", OneWay)->Args({medium, 1 << 20})->UseRealTime();
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
