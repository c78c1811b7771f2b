#include "coordinator/explain/explain_phase.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/execution_plan.h"
#include "coordinator/scheduler/plan_text.h"

namespace weft {
namespace {

class PhaseMaker {
 public:
  PhaseMaker(const PlanContext& context, absl::Span<const int32_t> layer_devices)
      : context_(context),
        graph_(context.graph()),
        layer_devices_(layer_devices),
        position_(graph_.nodes().size(), -1) {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!graph_.Executes(NodeId{i})) continue;
      position_[i] = static_cast<int32_t>(executed_.size());
      executed_.push_back(NodeId{i});
    }
  }

  absl::StatusOr<ExplainPhase> Make(const std::string& name, const Clock* clock) {
    phase_.name = name;
    phase_.tokens = context_.input().batch;
    PipelineOptions options;
    options.clock = clock;
    options.after_pass = [this](const PassRecord& record, const Plan& plan) {
      AddPass(record, plan);
    };
    ASSIGN_OR_RETURN(const ExecutionPlan plan, MakeExecutionPlan(context_, options));
    AddNodes(plan.plan);
    AddSplits(plan.plan);
    AddCuts();
    AddArenas(plan);
    AddProcesses(plan.plan);
    AddCounts(plan);
    return std::move(phase_);
  }

 private:
  // The name of the first weight or cache that a node works with; empty if there is none.
  std::string BoundName(NodeId id) const {
    for (const NodeId source : graph_.node(id).sources) {
      const LeafAttributes* leaf = graph_.leaf(graph_.Root(source));
      if (leaf == nullptr || context_.IsHostFilled(source)) continue;
      return graph_.node(graph_.Root(source)).name;
    }
    return "";
  }

  // What an unnamed node is called: "rope.3", or "%15" outside the layers.
  std::string PlainLabel(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.layer < 0 ? absl::StrCat("%", Index(id))
                          : absl::StrCat(AbslView(OpName(node.op)), ".", node.layer);
  }

  std::string Label(NodeId id) const {
    const std::string& name = graph_.node(id).name;
    if (!name.empty()) return name;
    const std::string bound = BoundName(id);
    return bound.empty() ? PlainLabel(id) : bound;
  }

  // As Label, but a result is never called like the weight that it was computed with.
  std::string ResultLabel(NodeId id) const {
    const std::string& name = graph_.node(id).name;
    if (!name.empty()) return name;
    const std::string bound = BoundName(id);
    if (bound.empty()) return PlainLabel(id);
    return absl::StrCat(AbslView(OpName(graph_.node(id).op)), "(", bound, ")");
  }

  void AddPass(const PassRecord& record, const Plan& plan) {
    ExplainPass pass;
    pass.name = std::string(record.name);
    pass.seconds = record.seconds;
    before_.resize(plan.assignments.size());
    for (size_t i = 0; i < plan.assignments.size(); ++i) {
      const Assignment& now = plan.assignments[i];
      if (now == before_[i]) continue;
      if (position_[i] < 0) {
        ++pass.other_changes;
        continue;
      }
      pass.changes.push_back({position_[i], before_[i].device, now.device, CauseCode(now),
                              CauseText(graph_, NodeId{static_cast<int32_t>(i)}, now)});
    }
    before_ = plan.assignments;
    phase_.passes.push_back(std::move(pass));
  }

  void AddNodes(const Plan& plan) {
    for (const NodeId id : executed_) {
      const Assignment& assignment = plan.assignments[Index(id)];
      ExplainNode node;
      node.id = Index(id);
      node.op = graph_.node(id).op;
      node.name = graph_.node(id).name;
      node.label = Label(id);
      node.layer = graph_.node(id).layer;
      node.device = assignment.device;
      node.cause = CauseCode(assignment);
      node.why = CauseText(graph_, id, assignment);
      node.bytes = ByteExtent(graph_.layout(id)).value_or(0);
      node.plain = context_.Support(assignment.device, id) == SupportKind::kPlain;
      phase_.nodes.push_back(std::move(node));
    }
  }

  void AddSplits(const Plan& plan) {
    int32_t at = 0;
    for (const Split& split : plan.splits) {
      ExplainSplit shown;
      shown.device = split.device;
      shown.begin = at;
      while (at < static_cast<int32_t>(executed_.size()) && Index(executed_[at]) < split.end) {
        phase_.nodes[at].split = static_cast<int32_t>(phase_.splits.size());
        ++at;
      }
      shown.end = at;
      for (const int32_t input : split.inputs) {
        const Replica& replica = plan.replicas[input];
        shown.inputs.push_back({replica.kind, Index(replica.source), ResultLabel(replica.source),
                                replica.bytes, plan.assignments[Index(replica.source)].device});
      }
      phase_.splits.push_back(std::move(shown));
    }
  }

  // The device of the node's layer; of nodes before the layers: where they are.
  int32_t Home(const ExplainNode& node) const {
    const auto layer = static_cast<size_t>(node.layer);
    if (node.layer >= 0 && layer < layer_devices_.size()) return layer_devices_[layer];
    const bool before = &node == &phase_.nodes.front();
    return before || layer_devices_.empty() ? node.device : layer_devices_.back();
  }

  // Neighbours and sources do not make a cut: what makes it is bound to a device, or refused.
  static bool IsBound(const ExplainNode& node) {
    return node.cause == "usr" || absl::StartsWith(node.cause, "1.");
  }

  bool Refuses(int32_t device, const ExplainNode& node) const {
    return device != node.device && !context_.Supports(device, NodeId{node.id});
  }

  // The node that is to blame for the cut before `split`; null for one that every plan has: a
  // change of layers, the way back to the layer's device, the next weights for the same device.
  const ExplainNode* Culprit(const ExplainSplit& split) const {
    const ExplainNode& first = phase_.nodes[split.begin];
    const ExplainNode& last = phase_.nodes[split.begin - 1];
    if (last.device == first.device) return nullptr;  // only copies the next weights
    if (Home(first) != first.device && (IsBound(first) || Refuses(last.device, first))) {
      return &first;
    }
    const bool interrupted = !IsBound(first) && Home(last) == Home(first);
    return interrupted && Home(first) != first.device ? &last : nullptr;
  }

  void AddCuts() {
    std::map<std::tuple<Op, int32_t, int32_t>, ExplainCut> cuts;
    for (const ExplainSplit& split : phase_.splits) {
      if (split.begin == split.end || split.begin == 0) continue;
      const ExplainNode* culprit = Culprit(split);
      if (culprit == nullptr) continue;
      const int32_t home = Home(*culprit);
      ExplainCut& cut = cuts[{culprit->op, home, culprit->device}];
      if (cut.count++ > 0) continue;
      cut.op = culprit->op;
      cut.home = home;
      cut.device = culprit->device;
      cut.refused = Refuses(home, *culprit);
      cut.why = cut.refused ? std::string(context_.Refusal(home, NodeId{culprit->id}).message())
                            : culprit->why;
    }
    for (auto& [key, cut] : cuts) phase_.cuts.push_back(std::move(cut));
    std::stable_sort(phase_.cuts.begin(), phase_.cuts.end(),
                     [](const ExplainCut& a, const ExplainCut& b) { return a.count > b.count; });
  }

  void AddArenas(const ExecutionPlan& plan) {
    const int32_t count = context_.device_count();
    for (int32_t d = 0; d < count; ++d) {
      const PoolPlan& pool = plan.memory.pools[d];
      ExplainArena arena;
      arena.bytes = pool.Bytes();
      arena.lower_bound = pool.lower_bound;
      arena.chunks = static_cast<int64_t>(pool.chunk_bytes.size());
      arena.crossing_bytes = plan.memory.pools[count + d].Bytes();
      arena.workspace_bytes = plan.workspace_bytes[d];
      phase_.arenas.push_back(arena);
    }
  }

  void AddProcesses(const Plan& plan) {
    std::map<int32_t, ExplainProcess> processes;
    for (const Split& split : plan.splits) {
      ExplainProcess& process = processes[context_.HostIndex(split.device)];
      process.host = context_.device(split.device).host();
      process.executes = 1;
      process.replies = 1;
    }
    for (const Replica& replica : plan.replicas) {
      const int32_t from = plan.assignments[Index(replica.source)].device;
      const bool apart = !context_.SameHost(from, replica.device);
      if (replica.kind == ReplicaKind::kInput || !apart) continue;
      ExplainProcess& sender = processes[context_.HostIndex(from)];
      ExplainProcess& receiver = processes[context_.HostIndex(replica.device)];
      sender.host = context_.device(from).host();
      ++sender.sends;
      sender.sent_bytes += replica.bytes;
      ++receiver.receives;
      receiver.received_bytes += replica.bytes;
    }
    for (auto& [host, process] : processes) phase_.processes.push_back(std::move(process));
  }

  void AddCounts(const ExecutionPlan& plan) {
    const PlanTraffic traffic = MeasureTraffic(context_, plan);
    phase_.copies = traffic.copies;
    phase_.copied_bytes = traffic.copied_bytes;
    phase_.staged_bytes = traffic.staged_bytes;
    phase_.input_bytes = traffic.input_bytes;
    phase_.fused = plan.scheduled.fused;
    phase_.resolved = plan.scheduled.resolved;
    phase_.in_place = plan.memory.in_place_count;
    phase_.rotating_copies = plan.copies;
    phase_.pipeline_refusal = plan.pipeline_refusal;
    phase_.remarks = plan.plan.remarks;
  }

  const PlanContext& context_;
  const Graph& graph_;
  absl::Span<const int32_t> layer_devices_;
  std::vector<NodeId> executed_;
  std::vector<int32_t> position_;  // in executed_, by node; -1: leafs and views
  std::vector<Assignment> before_;
  ExplainPhase phase_;
};

}  // namespace

absl::StatusOr<ExplainPhase> MakeExplainPhase(const std::string& name, const PlanContext& context,
                                              absl::Span<const int32_t> layer_devices,
                                              const Clock* clock) {
  return PhaseMaker(context, layer_devices).Make(name, clock);
}

}  // namespace weft
