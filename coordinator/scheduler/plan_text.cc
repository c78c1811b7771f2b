#include "coordinator/scheduler/plan_text.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

std::string NameOf(const PlanContext& context, NodeId id) {
  const std::string& name = context.graph().node(id).name;
  return name.empty() ? absl::StrCat("%", Index(id)) : name;
}

void AppendSplit(const PlanContext& context, const Plan& plan, size_t s, std::string& text) {
  const Split& split = plan.splits[s];
  absl::StrAppend(&text, "split ", s, " on ", context.device(split.device).name(), "\n");
  for (const int32_t at : split.inputs) {
    const Replica& replica = plan.replicas[at];
    absl::StrAppend(&text, "  < ", AbslView(ReplicaKindName(replica.kind)), " '",
                    NameOf(context, replica.source), "' ", replica.bytes, " bytes from ",
                    context.device(plan.assignments[Index(replica.source)].device).name(), "\n");
  }
  for (int32_t i = split.begin; i < split.end; ++i) {
    if (!context.graph().Executes(NodeId{i})) continue;
    absl::StrAppend(&text, "  ", AbslView(OpName(context.graph().node(NodeId{i}).op)), " '",
                    NameOf(context, NodeId{i}), "' ", CauseCode(plan.assignments[i]),
                    context.Support(split.device, NodeId{i}) == SupportKind::kPlain ? " plain" : "",
                    "\n");
  }
}

}  // namespace

std::string PlanText(const PlanContext& context, const ExecutionPlan& plan) {
  std::string text = absl::StrCat("batch ", context.input().batch, ", ", context.device_count(),
                                  " devices, ", context.graph().size(), " nodes\n");
  for (size_t s = 0; s < plan.plan.splits.size(); ++s) AppendSplit(context, plan.plan, s, text);
  const int32_t count = context.device_count();
  for (int32_t d = 0; d < count; ++d) {
    const PoolPlan& arena = plan.memory.pools[d];
    const PoolPlan& crossing = plan.memory.pools[count + d];
    if (arena.chunk_bytes.empty() && crossing.chunk_bytes.empty()) continue;
    absl::StrAppend(&text, "memory of ", context.device(d).name(), ": ", arena.Bytes(),
                    " bytes, lower bound ", arena.lower_bound);
    if (arena.chunk_bytes.size() > 1) {
      absl::StrAppend(&text, ", ", arena.chunk_bytes.size(), " chunks");
    }
    if (!crossing.chunk_bytes.empty()) {
      absl::StrAppend(&text, ", crossing ", plan.copies, " x ", crossing.Bytes());
    }
    text += "\n";
  }
  const PlanTraffic traffic = MeasureTraffic(context, plan);
  absl::StrAppend(
      &text, "splits ", traffic.splits, ", copies ", traffic.copies, " of ", traffic.copied_bytes,
      " bytes, staged ", traffic.staged_bytes, ", inputs ", traffic.input_bytes, ", processes ",
      traffic.processes, " (one message each way)",
      plan.scheduled.fused > 0 ? absl::StrCat(", fused ", plan.scheduled.fused) : "",
      plan.scheduled.resolved > 0 ? absl::StrCat(", resolved ", plan.scheduled.resolved) : "",
      "\n");
  for (const std::string& remark : plan.plan.remarks)
    absl::StrAppend(&text, "remark: ", remark, "\n");
  return text;
}

std::string AssignmentText(const PlanContext& context, const std::vector<Assignment>& before,
                           const std::vector<Assignment>& after) {
  std::string text;
  for (size_t i = 0; i < after.size(); ++i) {
    if (i < before.size() && before[i] == after[i]) continue;
    const NodeId id{static_cast<int32_t>(i)};
    const int32_t d = after[i].device;
    absl::StrAppend(&text, "%", i, " ", AbslView(OpName(context.graph().node(id).op)), " '",
                    context.graph().node(id).name, "' ",
                    d == kNoDevice ? "nowhere" : context.device(d).name(), " ", CauseCode(after[i]),
                    "\n");
  }
  return text;
}

PlanTraffic MeasureTraffic(const PlanContext& context, const ExecutionPlan& plan) {
  PlanTraffic traffic;
  traffic.splits = static_cast<int64_t>(plan.plan.splits.size());
  std::set<int32_t> hosts;
  for (const Split& split : plan.plan.splits) hosts.insert(context.HostIndex(split.device));
  traffic.processes = static_cast<int64_t>(hosts.size());
  for (const Replica& replica : plan.plan.replicas) {
    if (replica.kind == ReplicaKind::kInput) continue;
    ++traffic.copies;
    traffic.copied_bytes += replica.bytes;
    if (replica.kind != ReplicaKind::kTensor) traffic.staged_bytes += replica.bytes;
  }
  const Graph& graph = plan.scheduled.graph;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr || leaf->kind != LeafKind::kInput) continue;
    traffic.input_bytes += ByteExtent(graph.layout(NodeId{i})).value_or(0);
  }
  return traffic;
}

}  // namespace weft
