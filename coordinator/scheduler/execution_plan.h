// A finished plan: the graph as the devices run it, and where its tensors lie. What `explain`
// shows, and what is compiled to programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/scheduler/memory_planner.h"
#include "coordinator/scheduler/pass_pipeline.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"
#include "coordinator/scheduler/scheduled_graph.h"

namespace weft {

struct ExecutionPlan {
  Plan plan;  // over the caller's graph
  std::vector<PassRecord> passes;
  ScheduledGraph scheduled;
  // Pool d is the arena of device d's memory; pool device_count + d holds tensors that leave device
  // d, where steps are pipelined.
  MemoryPlan memory;
  std::vector<int64_t> workspace_bytes;  // per device: most that one node takes beside its tensors
  int32_t copies = 1;                    // rotating copies of what crosses devices
  std::string pipeline_refusal;          // why not, where it was wanted
};

// Places, cuts, rewrites and plans memory; touches no device but by its static questions. Errors:
// those of the passes and of PlanMemory.
absl::StatusOr<ExecutionPlan> MakeExecutionPlan(const PlanContext& context,
                                                const PipelineOptions& options);

}  // namespace weft
