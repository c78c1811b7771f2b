#include "coordinator/engine/step_plan.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/detached_collectives.h"
#include "coordinator/scheduler/pass_pipeline.h"

namespace weft {
namespace {

// How the sums of each size are made, and why.
std::vector<std::string> AllReduceRemarks(const PlanContext& context) {
  std::set<std::string> remarks;
  for (const Node& node : context.graph().nodes()) {
    const auto* reduce = std::get_if<AllReduceAttributes>(&node.attributes);
    if (reduce == nullptr) continue;
    const int32_t c = reduce->key.communicator;
    const int64_t elements = ElementCount(node.layout);
    std::string remark =
        absl::StrCat("sums of ", elements, " ", AbslView(DTypeName(reduce->wire)), ": ",
                     AbslView(CollectiveAlgorithmName(context.AlgorithmOf(node))), "; expected");
    for (const AllReducePrediction& prediction :
         PredictAllReduce(elements, context.HostsOf(c), reduce->wire, context.LinksOf(c),
                          context.input().options.all_reduce)) {
      absl::StrAppend(&remark, remark.back() == 'd' ? " " : ", ",
                      AbslView(CollectiveAlgorithmName(prediction.algorithm)),
                      absl::StrFormat(" %.1f us", prediction.microseconds));
    }
    remarks.insert(std::move(remark));
  }
  return {remarks.begin(), remarks.end()};
}

int64_t CollectivesOf(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return IsCollective(node.op); });
}

absl::StatusOr<StepPlan> Compile(const PlanInput& input, const ProcessGroup& group) {
  ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
  ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  StepPlan result;
  for (const PoolPlan& pool : plan.memory.pools) {
    result.arena_bytes += pool.Bytes();
    result.arena_lower_bound += pool.lower_bound;
  }
  if (!input.communicators.empty()) result.remarks = AllReduceRemarks(context);
  const size_t detached = FindDetached(context, plan.scheduled).size();
  if (detached > 0) {
    result.remarks.push_back(absl::StrCat("of ", input.batch, " tokens: ", detached, " of ",
                                          CollectivesOf(plan.scheduled.graph),
                                          " sums and gathers travel while their rank computes"));
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
  result.remarks.insert(result.remarks.begin(), ranks->remarks.begin(), ranks->remarks.end());
  return result;
}

}  // namespace weft
