// Which collectives of a plan go on beside what their device computes meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "common/graph/graph.h"
#include "coordinator/scheduler/plan_context.h"
#include "coordinator/scheduler/scheduled_graph.h"

namespace weft {

// `node` is begun where it stands, and finished in front of the nodes of `split`, the first of its
// device that reads the result.
struct DetachedCollective {
  NodeId node = kNoNode;
  int32_t split = -1;
  friend bool operator==(const DetachedCollective&, const DetachedCollective&) = default;
};

// Where the plan's options ask for overlap: those between which and that split the device has
// something to compute, whose source and result only their own device touches, and which nobody
// observes. In the order of the splits. For a plan and for the part of one process the same.
std::vector<DetachedCollective> FindDetached(const PlanContext& context,
                                             const ScheduledGraph& scheduled);

}  // namespace weft
