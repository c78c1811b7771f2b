#include "tests/unit/coordinator/scheduler/plan_checks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/coordinator/scheduler/memory_replay.h"
#include "tests/unit/coordinator/scheduler/weight_crossings.h"

namespace weft {
namespace {

class Checker {
 public:
  Checker(const PlanContext& context, const ExecutionPlan& plan)
      : context_(context),
        input_(context.input()),
        graph_(context.graph()),
        plan_(plan.plan),
        scheduled_(plan.scheduled),
        whole_(plan) {}

  std::string Run() {
    CheckAssignments();
    CheckSplits();
    if (!error_.empty()) return error_;  // the rest would index by them
    CheckNeighbours();
    CheckReplicas();
    if (WeightCrossings(context_, plan_).contains(std::string(kNoReason))) {
      Fail("a weight goes to another machine for no reason");
    }
    CheckStaged();
    CheckSources();
    CheckMemory();
    return error_;
  }

 private:
  void Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  void Fail(NodeId id, const absl::AlphaNum& why) {
    Fail(absl::StrCat(NodeText(graph_, id), " ", why));
  }
  Device& DeviceOf(int32_t d) const { return *input_.devices[d]; }
  const Assignment& At(NodeId id) const { return plan_.assignments[Index(id)]; }
  bool Off(Rule rule) const { return input_.options.disabled.Has(rule); }

  void CheckAssignments() {
    if (plan_.assignments.size() != graph_.nodes().size()) return Fail("nodes without assignments");
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Assignment& at = plan_.assignments[i];
      if (at.device < 0 || at.device >= static_cast<int32_t>(input_.devices.size())) {
        return Fail(NodeId{i}, "has no device");
      }
      if (!graph_.Executes(NodeId{i})) continue;
      if (!RunsSomehow(DeviceOf(at.device), graph_, NodeId{i})) Fail(NodeId{i}, "is refused");
      if (at.cause == Cause::kNone) Fail(NodeId{i}, "has no cause");
    }
    for (const Pin& pin : input_.pins) {
      if (At(pin.node).device != pin.device) Fail(pin.node, "left its pin");
      if (At(pin.node).cause != Cause::kPin) Fail(pin.node, "forgot its pin");
    }
  }

  void CheckSplits() {
    int32_t next = 0;
    for (size_t s = 0; s < plan_.splits.size(); ++s) {
      const Split& split = plan_.splits[s];
      if (split.begin != next || split.end <= next) return Fail(absl::StrCat("split ", s, " gaps"));
      next = split.end;
      for (int32_t i = split.begin; i < split.end; ++i) {
        if (graph_.Executes(NodeId{i}) && plan_.assignments[i].device != split.device) {
          Fail(NodeId{i}, "is in a split of another device");
        }
      }
      if (s > 0 && plan_.splits[s - 1].device == split.device && split.inputs.empty()) {
        Fail(absl::StrCat("split ", s, " is cut for nothing"));
      }
    }
    if (!plan_.splits.empty() && next != graph_.size()) Fail("splits end early");
  }

  // --- INV-B4 ---
  static bool IsForced(const Assignment& at) {
    return at.cause >= Cause::kPin && at.cause <= Cause::kHostBound;
  }
  bool Writes(NodeId id) const { return GetOpInfo(graph_.node(id).op).writes_source; }
  bool IsEnd(NodeId id, int32_t d) const {
    if (At(id).device != d) return false;
    return IsForced(At(id)) || (At(id).cause == Cause::kSpread && !Writes(id));
  }
  bool CouldRun(int32_t d, NodeId id) const {
    if (!Off(Rule::kWeightHost) && HasWeightElsewhere(context_, plan_, id, d)) return false;
    if (!RunsSomehow(DeviceOf(d), graph_, id)) return false;
    for (int32_t i = Index(id) + 1; i < graph_.size(); ++i) {
      if (!graph_.Executes(NodeId{i}) || graph_.Root(NodeId{i}) != id) continue;
      if (!RunsSomehow(DeviceOf(d), graph_, NodeId{i})) return false;
    }
    return true;
  }

  void CheckNeighbours() {
    if (Off(Rule::kSweepForward) || Off(Rule::kSweepBackward) || Off(Rule::kHostStops)) return;
    for (int32_t p = 0; p < graph_.size(); ++p) {
      const int32_t d = plan_.assignments[p].device;
      const DeviceKind kind = DeviceOf(d).kind();
      if (!graph_.Executes(NodeId{p}) || !IsEnd(NodeId{p}, d) || !context_.InBatch(d)) continue;
      if (kind == DeviceKind::kCpu || kind == DeviceKind::kAccelerator) continue;
      CheckAfter(p, d);
    }
  }

  void CheckAfter(int32_t p, int32_t d) {
    NodeId elsewhere = kNoNode;
    for (int32_t q = p + 1; q < graph_.size(); ++q) {
      const NodeId id{q};
      if (!graph_.Executes(id)) continue;
      if (IsEnd(id, d)) {
        if (elsewhere != kNoNode) Fail(elsewhere, absl::StrCat("left its neighbours ", p, ", ", q));
        return;
      }
      if (IsForced(At(id)) || Writes(id)) return;
      if (At(id).cause != Cause::kUpgrade && CouldRun(d, id)) elsewhere = id;
    }
  }

  // --- Copies ---
  void CheckReplicas() {
    std::set<std::pair<NodeId, const BufferType*>> seen;
    for (size_t at = 0; at < plan_.replicas.size(); ++at) {
      const Replica& replica = plan_.replicas[at];
      const bool fresh =
          seen.insert({replica.source, &DeviceOf(replica.device).buffer_type()}).second;
      if (!fresh && (!Off(Rule::kReuseReplica) || replica.kind == ReplicaKind::kInput)) {
        Fail(replica.source, "is copied twice into a memory");
      }
      const Split& split = plan_.splits[replica.split];
      if (std::count(split.inputs.begin(), split.inputs.end(), static_cast<int32_t>(at)) != 1) {
        Fail(replica.source, "is not listed once in its split");
      }
      if (replica.device != split.device) Fail(replica.source, "goes to another device");
      if (replica.bytes != *ByteExtent(graph_.layout(replica.source))) {
        Fail(replica.source, "has another size");
      }
      if (ReadableAt(replica.device, replica.source)) Fail(replica.source, "needs no copy");
      if (!HasReader(split, replica)) Fail(replica.source, "is copied for nobody");
    }
  }

  // The memory of a tensor of the caller's graph.
  const BufferType& MemoryOf(NodeId id) const {
    const NodeId root = graph_.Root(id);
    const LeafPlace& place = input_.leafs[Index(root)];
    if (graph_.IsLeaf(root) && place.type != nullptr && At(root).cause != Cause::kHostBound) {
      return *place.type;
    }
    return DeviceOf(At(root).device).buffer_type();
  }

  bool ReadableAt(int32_t d, NodeId id) const {
    const BufferType& type = MemoryOf(id);
    if (Off(Rule::kDirectRead) && &type != &DeviceOf(d).buffer_type() &&
        &type.device() != &DeviceOf(d)) {
      return false;
    }
    return DeviceOf(d).Supports(type).ok();
  }

  bool Shows(NodeId source, NodeId tensor) const {
    while (source != tensor && GetOpInfo(graph_.node(source).op).is_view) {
      source = graph_.node(source).sources[0];
    }
    return source == tensor;
  }

  bool HasReader(const Split& split, const Replica& replica) const {
    for (int32_t i = split.begin; i < split.end; ++i) {
      if (!graph_.Executes(NodeId{i})) continue;
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        if (Shows(source, replica.source)) return true;
      }
    }
    return false;
  }

  void CheckStaged() {
    if (Off(Rule::kStagedLimit)) return;
    for (const Split& split : plan_.splits) {
      int64_t staged = 0;
      std::vector<NodeId> weights;
      for (const int32_t at : split.inputs) {
        const Replica& replica = plan_.replicas[at];
        if (replica.kind != ReplicaKind::kWeight && replica.kind != ReplicaKind::kExperts) continue;
        staged += replica.bytes;
        weights.push_back(replica.source);
      }
      if (staged <= input_.options.staged_bytes_limit) continue;
      bool needed_at_once = false;
      for (int32_t i = split.begin; i < split.end && !needed_at_once; ++i) {
        const auto& sources = graph_.node(NodeId{i}).sources;
        needed_at_once = std::all_of(weights.begin(), weights.end(), [&](NodeId weight) {
          return std::any_of(sources.begin(), sources.end(),
                             [&](NodeId source) { return Shows(source, weight); });
        });
      }
      if (!needed_at_once) Fail(absl::StrCat("a split stages ", staged, " bytes"));
    }
  }

  // --- The scheduled graph ---
  const BufferType& ScheduledMemory(NodeId id) const {
    const NodeId root = scheduled_.graph.Root(id);
    const int32_t d = scheduled_.devices[Index(root)];
    const LeafAttributes* leaf = scheduled_.graph.leaf(root);
    const NodeId origin = scheduled_.origin[Index(root)];
    // Leafs that the host fills lie on each device that reads them.
    if (leaf != nullptr && origin != kNoNode && leaf->kind != LeafKind::kInput &&
        leaf->kind != LeafKind::kPageTable) {
      return MemoryOf(origin);
    }
    return DeviceOf(d).buffer_type();
  }

  void CheckSources() {
    const Graph& graph = scheduled_.graph;
    if (const absl::Status status = VerifyGraph(graph); !status.ok()) {
      return Fail(std::string(status.message()));
    }
    for (const ScheduledSplit& split : scheduled_.splits) {
      for (const NodeId id : split.nodes) {
        if (!DeviceOf(split.device).Supports(graph, id).ok()) {
          Fail(absl::StrCat("scheduled ", NodeText(graph, id), " is refused"));
        }
        for (const NodeId source : graph.node(id).sources) {
          if (DeviceOf(split.device).Supports(ScheduledMemory(source)).ok()) continue;
          Fail(absl::StrCat("scheduled ", NodeText(graph, id), " cannot read source ",
                            Index(source)));
        }
      }
    }
  }

  void CheckMemory() {
    const Graph& graph = scheduled_.graph;
    const size_t count = input_.devices.size();
    std::vector<MemoryPool> pools(2 * count);
    for (size_t p = 0; p < pools.size(); ++p) {
      const BufferType& type = input_.devices[p % count]->buffer_type();
      pools[p].alignment = std::max<int64_t>(type.alignment(), 64);
      pools[p].max_chunk_bytes = type.max_bytes();
      pools[p].tensor_bytes = [&type](const TensorLayout& layout) {
        return type.TensorBytes(layout);
      };
      pools[p].reuse = p < count;
    }
    MemoryOptions options;
    options.in_place = !Off(Rule::kInPlace);
    for (const ScheduledSplit& split : scheduled_.splits) {
      for (const ScheduledCopy& copy : split.copies) {
        if (copy.ids != kNoNode) options.extra_reads.push_back({copy.node, copy.ids});
      }
    }
    std::vector<int32_t> pool_of(graph.nodes().size(), -1);
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.Executes(NodeId{i}) || graph.Root(NodeId{i}) != NodeId{i}) continue;
      pool_of[i] = whole_.memory.places[i].pool;
      const BufferType& type = DeviceOf(scheduled_.devices[i]).buffer_type();
      if (&type != &input_.devices[pool_of[i] % count]->buffer_type()) {
        return Fail(absl::StrCat("scheduled node ", i, " is in memory of another device"));
      }
    }
    Fail(ReplayMemory(graph, pool_of, pools, options, whole_.memory));
    const auto again = PlanMemory(graph, pool_of, pools, options);
    if (!again.ok() || !(*again == whole_.memory)) Fail("memory planned anew differs");
  }

  const PlanContext& context_;
  const PlanInput& input_;
  const Graph& graph_;
  const Plan& plan_;
  const ScheduledGraph& scheduled_;
  const ExecutionPlan& whole_;
  std::string error_;
};

}  // namespace

std::string PlanFault(const PlanContext& context, const ExecutionPlan& plan) {
  return Checker(context, plan).Run();
}

}  // namespace weft
