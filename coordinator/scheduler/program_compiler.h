// Turns plans into programs: slots for what is bound, arenas for what is computed, a stream of
// commands per device.
#pragma once

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/graph.h"
#include "common/program/program.h"
#include "coordinator/scheduler/execution_plan.h"

namespace weft {

// The program of the one process that holds all devices of the plan, by the same positions.
// Observed nodes carry their id in the caller's graph as tag. Errors: INTERNAL.
absl::StatusOr<Program> CompilePlan(const PlanContext& context, const ExecutionPlan& plan);

}  // namespace weft
