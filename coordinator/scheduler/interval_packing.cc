#include "coordinator/scheduler/interval_packing.h"

#include <algorithm>
#include <numeric>

namespace weft {
namespace {

// The lowest offset at which `bytes` fit between the taken ranges, which are sorted.
int64_t LowestGap(const std::vector<std::pair<int64_t, int64_t>>& taken, int64_t bytes) {
  int64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) return at;
    at = std::max(at, end);
  }
  return at;
}

}  // namespace

Packing PackIntervals(absl::Span<const Lifetime> lifetimes, int32_t steps) {
  Packing packing;
  packing.offsets.resize(lifetimes.size());
  std::vector<int32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
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

}  // namespace weft
