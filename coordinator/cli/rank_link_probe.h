// Measures the connections of ranks, for the choice of how they add up and when.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "coordinator/cluster/fleet.h"
#include "coordinator/engine/rank_links.h"

namespace weft {

// Those between the workers of each group (MetaDevice) in `devices`, one after another, while no
// steps are in flight. Stops when the pairs have taken four times as long as after which a worker
// counts as lost; a pair that could not be measured is left out with a warning. Errors: the loss of
// a worker.
absl::StatusOr<std::vector<HostLink>> ProbeRankLinks(Fleet& fleet,
                                                     absl::Span<Device* const> devices,
                                                     Logger& logger);

}  // namespace weft
