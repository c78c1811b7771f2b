// Packs tensors with known lifetimes into one block, largest first: looks at all of them at once,
// so that it often does better than taking them in the order they are made.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// In use from step `first` to step `last`, both included.
struct Lifetime {
  int32_t first = 0;
  int32_t last = 0;
  int64_t bytes = 0;  // > 0
};

struct Packing {
  std::vector<int64_t> offsets;  // per lifetime
  int64_t bytes = 0;
};

// Each tensor goes to the lowest gap that holds it among those placed before that live at the same
// time; of equal sizes the earlier first (Pisarchyk and Lee 2020, arXiv:2001.03288, greedy by
// size). Where that takes a thirty-second more than what lives at once,
// other orders are tried, each one tensor apart from the best so far. `steps`: steps are numbered
// below it. Time: for each order the sum of lifetimes times the tensors alive at once; fewer orders
// the more tensors.
Packing PackIntervals(absl::Span<const Lifetime> lifetimes, int32_t steps);

}  // namespace weft
