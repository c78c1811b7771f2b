#include "common/cpu/limits/machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "common/cpu/limits/peak_loops.h"

namespace weft {
namespace {

constexpr int kRounds = 4;
constexpr int64_t kSteps = 2'000'000;
constexpr int64_t kReadBytesPerThread = int64_t{128} << 20;  // far beyond any cache

// Best rate over several rounds of all threads doing `work` at once; `work` returns what it did.
double BestRate(int32_t threads, const Clock& clock,
                const std::function<int64_t(int32_t thread, int64_t* sink)>& work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int64_t> done(threads);
    std::vector<int64_t> sinks(threads);
    const Clock::TimePoint start = clock.Now();
    std::vector<std::thread> others;
    for (int32_t i = 1; i < threads; ++i) {
      others.emplace_back([&, i] { done[i] = work(i, &sinks[i]); });
    }
    done[0] = work(0, &sinks[0]);
    for (std::thread& other : others) other.join();
    const double seconds = SecondsSince(clock, start);
    int64_t total = 0;
    for (const int64_t d : done) total += d;
    if (seconds > 0) best = std::max(best, static_cast<double>(total) / seconds);
  }
  return best;
}

// Written once, on huge pages where there are any; null if memory is short.
uint8_t* MapMemory(int64_t bytes) {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  auto* bytes_data = static_cast<uint8_t*>(data);
  std::fill(bytes_data, bytes_data + bytes, uint8_t{1});
  return bytes_data;
}

double ReadRate(int32_t threads, const Clock& clock) {
  const int64_t bytes = kReadBytesPerThread * threads;
  uint8_t* data = MapMemory(bytes);
  if (data == nullptr) return 0;
  const double rate = BestRate(threads, clock, [&](int32_t thread, int64_t* sink) {
    return ReadLoop(data + thread * kReadBytesPerThread, kReadBytesPerThread, sink);
  });
  munmap(data, static_cast<size_t>(bytes));
  return rate;
}

}  // namespace

MachineLimits MeasureMachineLimits(int32_t threads, InstructionSet isa, const Clock& clock) {
  MachineLimits limits;
  limits.read_bytes_per_s = ReadRate(threads, clock);
  limits.int8_ops_per_s = BestRate(
      threads, clock, [isa](int32_t, int64_t* sink) { return Int8Loop(isa, kSteps, sink); });
  limits.f32_flops = BestRate(threads, clock,
                              [isa](int32_t, int64_t* sink) { return F32Loop(isa, kSteps, sink); });
  return limits;
}

}  // namespace weft
