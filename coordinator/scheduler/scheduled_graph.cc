#include "coordinator/scheduler/scheduled_graph.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/fusion.h"

namespace weft {
namespace {

constexpr size_t kMaxReplicaName = 200;  // programs allow 256 bytes

class Rewriter {
 public:
  Rewriter(const PlanContext& context, const Plan& plan)
      : context_(context),
        plan_(plan),
        graph_(context.graph()),
        fusion_finder_(graph_, context.input().options.observed),
        original_(graph_.nodes().size(), kNoNode) {}

  absl::StatusOr<ScheduledGraph> Run() {
    for (size_t s = 0; s < plan_.splits.size(); ++s) {
      const Split& split = plan_.splits[s];
      split_ = static_cast<int32_t>(s);
      result_.splits.push_back({split.device, {}, {}, {}});
      EmitReplicas(split);
      FindSplitFusions(split);
      for (int32_t i = split.begin; i < split.end; ++i) {
        if (graph_.Executes(NodeId{i})) RETURN_IF_ERROR(EmitNode(NodeId{i}, split.device));
      }
    }
    Finish();
    return std::move(result_);
  }

 private:
  NodeId Append(Node node, int32_t device, int32_t split, NodeId origin) {
    result_.devices.push_back(device);
    result_.split_of.push_back(split);
    result_.origin.push_back(origin);
    return result_.graph.Append(std::move(node));
  }

  // `id` of the caller's graph where it was made: leafs and views are appended when first asked
  // for.
  NodeId Original(NodeId id) {
    std::vector<NodeId> chain;  // views still to be appended, outermost first
    while (original_[Index(id)] == kNoNode && !graph_.IsLeaf(id)) {
      chain.push_back(id);
      id = graph_.node(id).sources[0];
    }
    if (original_[Index(id)] == kNoNode) {
      original_[Index(id)] = Append(graph_.node(id), plan_.assignments[Index(id)].device, -1, id);
    }
    NodeId at = original_[Index(id)];
    for (; !chain.empty(); chain.pop_back()) {
      at = AppendView(chain.back(), at, graph_.node(chain.back()).view_offset);
      original_[Index(chain.back())] = at;
    }
    return at;
  }

  // The view `id` over `source`, `offset` bytes from the start of source's root.
  NodeId AppendView(NodeId id, NodeId source, int64_t offset) {
    Node node = graph_.node(id);
    node.sources = {source};
    node.view_root = result_.graph.Root(source);
    node.view_offset = offset;
    node.output = false;
    return Append(std::move(node), result_.devices[Index(source)], -1, id);
  }

  std::string ReplicaName(NodeId source, int32_t device) const {
    const std::string& name = graph_.node(source).name;
    std::string full = absl::StrCat(name, "@", context_.device(device).name());
    if (full.size() <= kMaxReplicaName) return full;
    return name.size() + 8 <= kMaxReplicaName ? absl::StrCat(name, "@", device) : name;
  }

  // Inputs first, since copies of experts may ask them.
  void EmitReplicas(const Split& split) {
    for (const bool inputs : {true, false}) {
      for (const int32_t at : split.inputs) {
        const Replica& replica = plan_.replicas[at];
        if ((replica.kind == ReplicaKind::kInput) == inputs) EmitReplica(replica);
      }
    }
  }

  // The tensor itself or, where that is on another machine, the replica that a device of this one
  // has: what crosses the network crosses once.
  NodeId NearestOf(NodeId source, int32_t device) {
    const NodeId original = Original(source);
    if (context_.SameHost(result_.devices[Index(original)], device)) return original;
    for (int32_t d = 0; d < context_.device_count(); ++d) {
      // Its own is being made, or is not to be used again.
      if (d == context_.MemoryOf(device) || !context_.SameHost(d, device)) continue;
      const auto known = replicas_.find({source, d});
      if (known != replicas_.end()) return known->second;
    }
    return original;
  }

  void EmitReplica(const Replica& replica) {
    const NodeId source = replica.source;
    NodeId& at = replicas_[{source, context_.MemoryOf(replica.device)}];
    if (replica.kind == ReplicaKind::kInput) {
      at = Append(graph_.node(source), replica.device, -1, source);
      return;
    }
    Node node;
    node.op = Op::kCopy;
    node.attributes = CopyAttributes{graph_.layout(source).dtype};
    node.sources = {replica.kind == ReplicaKind::kTensor ? NearestOf(source, replica.device)
                                                         : Original(source)};
    node.layout = *PackedLayout(graph_.layout(source).dtype, graph_.layout(source).ne);
    node.layer = graph_.node(source).layer;
    node.name = ReplicaName(source, replica.device);
    ScheduledCopy copy;
    copy.kind = replica.kind;
    // The ids that the readers have, if those are no copy of what was computed.
    if (replica.ids != kNoNode) {
      copy.ids = context_.IsHostFilled(replica.ids) ? Map(replica.ids, replica.device)
                                                    : Original(replica.ids);
    }
    at = Append(std::move(node), replica.device, split_, source);
    copy.node = at;
    result_.splits.back().copies.push_back(copy);
  }

  // `source` as `device` reads it.
  NodeId Map(NodeId source, int32_t device) {
    if (context_.Reads(plan_, device, source)) return Original(source);
    const NodeId copied = context_.ReplicatedTensor(source);
    const NodeId replica = replicas_.at({copied, context_.MemoryOf(device)});
    std::vector<NodeId> chain;
    for (NodeId id = source; id != copied; id = graph_.node(id).sources[0]) chain.push_back(id);
    NodeId at = replica;
    for (; !chain.empty(); chain.pop_back()) {
      const NodeId view = chain.back();
      const auto [known, fresh] = clones_.try_emplace({view, replica}, kNoNode);
      if (fresh) {
        const int64_t offset = graph_.node(view).view_offset - graph_.node(copied).view_offset;
        // A replica of an input is a leaf or view chain with the same offsets from its root.
        known->second = AppendView(view, at, offset);
      }
      at = clones_.at({view, replica});
    }
    return at;
  }

  // Is `source` where a kernel of `device` could read it?
  bool IsAtHand(NodeId source, int32_t device) const {
    return context_.Reads(plan_, device, source) ||
           replicas_.contains({context_.ReplicatedTensor(source), context_.MemoryOf(device)});
  }

  // The fused op alone, for asking the device; sources with gaps are not worth it.
  bool SupportsFused(const Node& fused, int32_t device) const {
    Graph alone;
    Node node = fused;
    node.sources.clear();
    for (const NodeId source : fused.sources) {
      if (!IsAtHand(source, device) || !IsContiguous(graph_.layout(source))) return false;
      const NodeId leaf = alone.Append(Node{});
      alone.mutable_node(leaf).attributes = LeafAttributes{LeafKind::kInput, Index(leaf)};
      alone.mutable_node(leaf).layout = graph_.layout(source);
      node.sources.push_back(leaf);
    }
    const NodeId at = alone.Append(std::move(node));
    return context_.device(device).Supports(alone, at).ok();
  }

  void FindSplitFusions(const Split& split) {
    fusions_.clear();
    fused_away_.clear();
    if (!context_.Enabled(Rule::kFuse)) return;
    std::vector<NodeId> nodes;
    for (int32_t i = split.begin; i < split.end; ++i) {
      if (graph_.Executes(NodeId{i})) nodes.push_back(NodeId{i});
    }
    const auto supports = [&](const Node& fused) { return SupportsFused(fused, split.device); };
    for (Fusion& fusion : fusion_finder_.Find(nodes, supports)) {
      result_.fused += static_cast<int64_t>(fusion.replaced.size());
      for (const NodeId id : fusion.replaced) fused_away_.insert(id);
      fusions_.emplace(fusion.result, std::move(fusion.fused));
    }
  }

  absl::Status EmitNode(NodeId id, int32_t device) {
    const auto fusion = fusions_.find(id);
    if (fusion == fusions_.end() && fused_away_.contains(id)) return absl::OkStatus();
    Node node = fusion == fusions_.end() ? graph_.node(id) : fusion->second;
    for (NodeId& source : node.sources) source = Map(source, device);
    if (fusion == fusions_.end() && context_.Support(device, id) == SupportKind::kPlain) {
      return EmitPlainForm(id, node.sources, device);
    }
    if (GetOpInfo(node.op).writes_source) {
      node.view_root = result_.graph.Root(node.sources[0]);
    }
    const NodeId at = Append(std::move(node), device, split_, id);
    original_[Index(id)] = at;
    result_.splits.back().nodes.push_back(at);
    return absl::OkStatus();
  }

  absl::Status EmitPlainForm(NodeId id, absl::Span<const NodeId> sources, int32_t device) {
    const int32_t first = result_.graph.size();
    ASSIGN_OR_RETURN(const NodeId last, AppendPlainForm(graph_, id, sources, result_.graph));
    for (int32_t i = first; i < result_.graph.size(); ++i) {
      const bool executes = result_.graph.Executes(NodeId{i});
      const NodeId shown = executes ? kNoNode : result_.graph.node(NodeId{i}).sources[0];
      result_.devices.push_back(executes ? device : result_.devices[Index(shown)]);
      result_.split_of.push_back(executes ? split_ : -1);
      result_.origin.push_back(NodeId{i} == last ? id : kNoNode);
      if (executes) result_.splits.back().nodes.push_back(NodeId{i});
    }
    original_[Index(id)] = last;
    ++result_.resolved;
    return absl::OkStatus();
  }

  void Finish() {
    const int32_t fallback =
        plan_.splits.empty() ? context_.last_device() : plan_.splits.front().device;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (graph_.node(id).output) {
        const NodeId at = Original(id);
        result_.graph.mutable_node(at).output = true;
        result_.outputs.push_back(at);
      }
    }
    // The inputs of a program have no gaps: one that nothing reads goes where there is a stream.
    absl::flat_hash_map<int32_t, bool> present;
    for (int32_t i = 0; i < result_.graph.size(); ++i) {
      const LeafAttributes* leaf = result_.graph.leaf(NodeId{i});
      if (leaf != nullptr && leaf->kind == LeafKind::kInput) present[leaf->id] = true;
    }
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* leaf = graph_.leaf(NodeId{i});
      if (leaf == nullptr || leaf->kind != LeafKind::kInput || present.contains(leaf->id)) continue;
      Append(graph_.node(NodeId{i}), fallback, -1, NodeId{i});
    }
  }

  const PlanContext& context_;
  const Plan& plan_;
  const Graph& graph_;
  FusionFinder fusion_finder_;
  ScheduledGraph result_;
  std::vector<NodeId> original_;  // by node of the caller's graph
  absl::flat_hash_map<std::pair<NodeId, int32_t>, NodeId> replicas_;  // by source and memory
  absl::flat_hash_map<std::pair<NodeId, NodeId>, NodeId> clones_;     // (view, replica) -> clone
  absl::flat_hash_map<NodeId, Node> fusions_;  // of the split: by the node they replace
  absl::flat_hash_set<NodeId> fused_away_;
  int32_t split_ = 0;
};

}  // namespace

absl::StatusOr<ScheduledGraph> BuildScheduledGraph(const PlanContext& context, const Plan& plan) {
  return Rewriter(context, plan).Run();
}

}  // namespace weft
