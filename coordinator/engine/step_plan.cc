#include "coordinator/engine/step_plan.h"

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/scheduler/pass_pipeline.h"

namespace weft {
namespace {

absl::StatusOr<StepPlan> Compile(const PlanInput& input, const ProcessGroup& group) {
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  StepPlan result;
  for (const PoolPlan& pool : plan.memory.pools) {
    result.arena_bytes += pool.Bytes();
    result.arena_lower_bound += pool.lower_bound;
  }
  result.copies = plan.copies;
  result.pipeline_refusal = plan.pipeline_refusal;
  ASSIGN_OR_RETURN(result.program, group.Compile(context, plan));
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankGraph>> ExpandStep(const Graph& graph,
                                                      const PlacedDevices& placed,
                                                      const HeldSlices& held, int64_t tokens,
                                                      const PlanOptions& options) {
  const PlanInput input = MakePlanInput(graph, placed, tokens, options);
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  Plan plan;
  RETURN_IF_ERROR(PassPipeline().Run(context, plan, {}).status());
  return ExpandRanks(context, plan, held.layout);
}

absl::StatusOr<StepPlan> PlanStep(const Graph& graph, const PlacedDevices& placed,
                                  const HeldSlices& held, const ProcessGroup& group, int64_t tokens,
                                  const PlanOptions& options) {
  if (!held.split) return Compile(MakePlanInput(graph, placed, tokens, options), group);
  ASSIGN_OR_RETURN(const std::unique_ptr<RankGraph> ranks,
                   ExpandStep(graph, placed, held, tokens, options));
  ASSIGN_OR_RETURN(StepPlan result, Compile(ranks->input, group));
  result.outputs = std::move(ranks->outputs);
  result.remarks = std::move(ranks->remarks);
  return result;
}

}  // namespace weft
