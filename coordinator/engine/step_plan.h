// From a model's graph to the programs of a step: scheduled, expanded over the ranks of groups, and
// scheduled again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/scheduler/execution_plan.h"

namespace weft {

struct StepPlan {
  FleetProgram program;
  // How the caller's outputs come from the program's; empty: they are the same.
  std::vector<RankOutput> outputs;
  std::vector<std::string> remarks;  // of the expansion, and how ranks add up
  int64_t arena_bytes = 0;           // of all devices
  int64_t arena_lower_bound = 0;
  int32_t copies = 1;  // as ExecutionPlan
  std::string pipeline_refusal;
};

// The graph rank by rank, where some device is a group (HeldSlices::split). Arguments outlive the
// result. Errors: as PlanStep.
absl::StatusOr<std::unique_ptr<RankGraph>> ExpandStep(const Graph& graph,
                                                      const PlacedDevices& placed,
                                                      const HeldSlices& held, int64_t tokens,
                                                      const PlanOptions& options);

// `graph` is the model's for steps of `tokens` tokens. Errors: those of the scheduler and of
// ExpandRanks.
absl::StatusOr<StepPlan> PlanStep(const Graph& graph, const PlacedDevices& placed,
                                  const HeldSlices& held, const ProcessGroup& group, int64_t tokens,
                                  const PlanOptions& options);

}  // namespace weft
