#include "coordinator/serving/serving_state.h"

#include <algorithm>

namespace weft {

void DurationHistogram::Add(double seconds) {
  ++count;
  sum += seconds;
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  if (bucket != kBounds.end()) ++counts[bucket - kBounds.begin()];
}

}  // namespace weft
