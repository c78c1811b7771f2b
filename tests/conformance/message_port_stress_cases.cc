// Many threads and ports, more than cores.
#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "tests/conformance/message_port_suite.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

// The size of a message, known to both sides.
int64_t SizeOf(uint64_t seed, int32_t from, int32_t to, int64_t step, int32_t id) {
  Random random(seed ^ (((from * 16 + to) * 1000 + step) * 64 + id));
  switch (random.Between(0, 9)) {
    case 0:
      return random.Between(16380, 16390);
    case 1:
      return random.Between(16385, 200000);
    default:
      return random.Between(0, 4000);
  }
}

uint64_t SeedOf(int32_t from, int32_t to, int64_t step, int32_t id) {
  return ((from * 16 + to) * 1000 + step) * 64 + id;
}

// One thread of one port: in each step sends to every peer and reads from every peer under its own
// id.
void RunThread(MessagePort& port, int32_t self, int32_t count, int32_t id, int64_t steps,
               uint64_t seed, Clock::TimePoint deadline) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int32_t peer = 0; peer < count; ++peer) {
      if (peer == self) continue;
      const int64_t bytes = SizeOf(seed, self, peer, step, id);
      ASSERT_OK(SendBytes(port, peer, Header(id % 3, step, id),
                          PatternPayload(SeedOf(self, peer, step, id), bytes)));
    }
    for (int32_t peer = 0; peer < count; ++peer) {
      if (peer == self) continue;
      const auto message = port.Receive({.peer = peer, .step = step, .id = id}, deadline);
      ASSERT_OK(message);
      const int64_t bytes = SizeOf(seed, peer, self, step, id);
      ASSERT_TRUE(message->payload == PatternPayload(SeedOf(peer, self, step, id), bytes))
          << "from " << peer << ", step " << step << ", id " << id;
    }
  }
}

// Every port sends to every other from several threads.
void AllToAll(const std::vector<std::unique_ptr<MessagePort>>& ports, int32_t threads_per_port,
              int64_t steps) {
  const uint64_t seed = TestSeed(77);
  const Clock::TimePoint deadline = SystemClock().Now() + std::chrono::seconds(120);
  const int32_t count = static_cast<int32_t>(ports.size());
  std::atomic<int32_t> working = count * threads_per_port;
  {
    std::vector<std::unique_ptr<ScopedThread>> threads;
    for (int32_t self = 0; self < count; ++self) {
      for (int32_t id = 0; id < threads_per_port; ++id) {
        threads.push_back(std::make_unique<ScopedThread>([=, &ports, &working] {
          RunThread(*ports[self], self, count, id, steps, seed, deadline);
          --working;
          // Others may still need what this side holds for them.
          while (working > 0 && SystemClock().Now() < deadline) {
            ports[self]->Progress();
            std::this_thread::yield();
          }
        }));
      }
    }
  }
  for (const auto& port : ports) EXPECT_OK(port->failure());
}

TEST_P(MessagePortSuite, AllToAll_TwoPortsFourThreads_EveryMessageArrives) {
  AllToAll(NewPorts(2), 4, 100);
}

TEST_P(MessagePortSuite, AllToAll_FourPortsThreeThreads_EveryMessageArrives) {
  AllToAll(NewPorts(4), 3, 30);
}

}  // namespace
}  // namespace weft
