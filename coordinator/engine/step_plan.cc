#include "coordinator/engine/step_plan.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
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

// How many collectives go on beside what their device computes; empty where none does.
std::string OverlapRemark(const FleetProgram& program, int64_t tokens) {
  int64_t all = 0;
  int64_t detached = 0;
  for (const ProcessProgram& process : program.processes) {
    for (const Stream& stream : process.program.streams) {
      for (const Command& command : stream.commands) {
        const auto* collective = std::get_if<CollectiveCommand>(&command);
        if (collective == nullptr) continue;
        ++all;
        detached += collective->detached ? 1 : 0;
      }
    }
  }
  if (detached == 0) return "";
  return absl::StrCat("of ", tokens, " tokens: ", detached, " of ", all,
                      " sums and gathers travel while their rank computes");
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
  result.copies = plan.copies;
  result.pipeline_refusal = plan.pipeline_refusal;
  ASSIGN_OR_RETURN(result.program, group.Compile(context, plan));
  std::string overlap = OverlapRemark(result.program, input.batch);
  if (!overlap.empty()) result.remarks.push_back(std::move(overlap));
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
