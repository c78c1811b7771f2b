#include "coordinator/scheduler/interval_packing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/random.h"

namespace weft {
namespace {

// How long a better order is looked for: the same work for every number of lifetimes.
constexpr int32_t kTriedLifetimes = 10000;
constexpr int32_t kLeastTries = 8;
constexpr int32_t kMostTries = 250;
constexpr uint64_t kSeed = 1;  // a plan is a pure function of its input

// The lowest offset at which `bytes` fit between the taken ranges, which are sorted.
int64_t LowestGap(const std::vector<std::pair<int64_t, int64_t>>& taken, int64_t bytes) {
  int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) return at;
    at = std::max(at, end);
  }
  return at;
}

// Each to the lowest gap among those before it in `order` that live at the same time.
Packing PackInOrder(absl::Span<const Lifetime> lifetimes, absl::Span<const int32_t> order,
                    int32_t steps) {
  Packing packing;
  packing.offsets.resize(lifetimes.size());
  std::vector<std::vector<int32_t>> alive(static_cast<size_t>(steps));  // placed, by step
  std::vector<int32_t> seen_by(lifetimes.size(), -1);
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const int32_t i : order) {
    const Lifetime& life = lifetimes[i];
    taken.clear();
    for (int32_t step = life.first; step <= life.last; ++step) {
      for (const int32_t other : alive[step]) {
        if (seen_by[other] == i) continue;
        seen_by[other] = i;
        taken.emplace_back(packing.offsets[other], packing.offsets[other] + lifetimes[other].bytes);
      }
      alive[step].push_back(i);
    }
    std::sort(taken.begin(), taken.end());
    packing.offsets[i] = LowestGap(taken, life.bytes);
    packing.bytes = std::max(packing.bytes, packing.offsets[i] + life.bytes);
  }
  return packing;
}

int64_t PeakBytes(absl::Span<const Lifetime> lifetimes, int32_t steps) {
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1);
  for (const Lifetime& life : lifetimes) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const int64_t bytes : change) peak = std::max(peak, live += bytes);
  return peak;
}

// Position in `order` of one that reaches the top.
int64_t TopOf(absl::Span<const Lifetime> lifetimes, const Packing& packing,
              absl::Span<const int32_t> order) {
  const auto reaches = [&](int32_t i) {
    return packing.offsets[i] + lifetimes[i].bytes == packing.bytes;
  };
  return std::find_if(order.begin(), order.end(), reaches) - order.begin();
}

}  // namespace

Packing PackIntervals(absl::Span<const Lifetime> lifetimes, int32_t steps) {
  const auto count = static_cast<int32_t>(lifetimes.size());
  std::vector<int32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  Packing best = PackInOrder(lifetimes, order, steps);
  const int64_t enough = PeakBytes(lifetimes, steps) / 32 * 33;
  Random random(kSeed);
  const int32_t tries = std::clamp(kTriedLifetimes / std::max(count, 1), kLeastTries, kMostTries);
  for (int32_t i = 0; i < tries && best.bytes > enough; ++i) {
    std::vector<int32_t> moved = order;
    const bool top = random.Between(0, 1) == 0;
    const int64_t from = top ? TopOf(lifetimes, best, order) : random.Between(0, count - 1);
    const int64_t to = random.Between(0, count - 1);
    const int32_t lifetime = moved[from];
    moved.erase(moved.begin() + from);
    moved.insert(moved.begin() + to, lifetime);
    Packing packing = PackInOrder(lifetimes, moved, steps);
    if (packing.bytes > best.bytes) continue;
    best = std::move(packing);
    order = std::move(moved);
  }
  return best;
}

}  // namespace weft
