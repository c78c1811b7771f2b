// What must hold of a plan after each pass (spec B.14). Finds errors of the passes themselves.
#pragma once

#include "absl/status/status.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

// Pins are kept, and every assigned node can run where it is. Errors: INTERNAL naming the node.
absl::Status VerifyAssignments(const PlanContext& context, const Plan& plan);

// After the cut: every node has a device, the splits are the nodes in order, each source can be
// read or has a replica made before its reader, a tensor is copied to a device once, and staged
// weights stay within the limit.
absl::Status VerifyCut(const PlanContext& context, const Plan& plan);

}  // namespace weft
