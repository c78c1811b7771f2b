#include "coordinator/serving/serving_state.h"

#include <algorithm>

namespace weft {

void DurationHistogram::Add(double seconds) {
  ++count;
  sum += seconds;
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  if (bucket != kBounds.end()) ++counts[bucket - kBounds.begin()];
}

void ServingCounters::CountEnd(const absl::Status& status) {
  ++(status.ok() ? finished : absl::IsCancelled(status) ? cancelled : failed);
}

}  // namespace weft
