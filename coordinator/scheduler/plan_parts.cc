#include "coordinator/scheduler/plan_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

class PartCutter {
 public:
  PartCutter(const PlanContext& context, const ExecutionPlan& plan,
             absl::Span<const int32_t> process_of, int32_t processes)
      : context_(context),
        plan_(plan),
        whole_(plan.scheduled),
        graph_(plan.scheduled.graph),
        process_of_(process_of),
        node_of_(graph_.nodes().size(), kNoNode) {
    result_.parts.resize(static_cast<size_t>(processes));
    for (int32_t d = 0; d < context.device_count(); ++d) {
      if (process_of[d] >= 0) result_.parts[process_of[d]].devices.push_back(d);
    }
  }

  absl::StatusOr<PlanParts> Run() {
    RETURN_IF_ERROR(CheckMemories());
    RETURN_IF_ERROR(FindEdges());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const absl::Status status = AddNode(NodeId{i});
      if (status.ok()) continue;
      return absl::Status(status.code(),
                          absl::StrCat(NodeText(graph_, NodeId{i}), ": ", status.message()));
    }
    for (size_t s = 0; s < whole_.splits.size(); ++s) {
      RETURN_IF_ERROR(AddSplit(static_cast<int32_t>(s)));
    }
    for (size_t i = 0; i < whole_.outputs.size(); ++i) {
      PlanPart& part = PartOf(whole_.outputs[i]);
      part.scheduled.outputs.push_back(node_of_[Index(whole_.outputs[i])]);
      part.outputs.push_back(static_cast<int32_t>(i));
    }
    for (PlanPart& part : result_.parts) NumberInputs(part);
    return std::move(result_);
  }

 private:
  int32_t ProcessOf(NodeId id) const { return process_of_[whole_.devices[Index(id)]]; }
  PlanPart& PartOf(NodeId id) { return result_.parts[ProcessOf(id)]; }

  absl::Status CheckMemories() const {
    for (int32_t d = 0; d < context_.device_count(); ++d) {
      const int32_t memory = context_.MemoryOf(d);
      if (process_of_[d] == process_of_[memory]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(context_.device(d).name(), " computes in memory of ",
                       context_.device(memory).name(), ", which is in another process"));
    }
    return absl::OkStatus();
  }

  absl::Status FindEdges() {
    for (const ScheduledSplit& split : whole_.splits) {
      for (const ScheduledCopy& copy : split.copies) {
        const NodeId source = graph_.node(copy.node).sources[0];
        const int32_t from = ProcessOf(source);
        const int32_t to = ProcessOf(copy.node);
        if (from == to || from < 0 || to < 0) continue;
        if (copy.kind != ReplicaKind::kTensor) {
          return absl::InvalidArgumentError(
              absl::StrCat("weight '", graph_.node(source).name, "' on ", DeviceName(source),
                           " would be copied to ", DeviceName(copy.node),
                           " of another machine in each step; place both on one"));
        }
        edge_of_.emplace(copy.node, static_cast<int32_t>(result_.edges.size()));
        result_.edges.push_back(
            {graph_.node(source).name, from, to, ByteExtent(graph_.layout(copy.node)).value_or(0)});
      }
    }
    return absl::OkStatus();
  }

  const std::string& DeviceName(NodeId id) const {
    return context_.device(whole_.devices[Index(id)]).name();
  }

  absl::Status AddNode(NodeId id) {
    const int32_t process = ProcessOf(id);
    if (process < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("its device ", DeviceName(id), " belongs to none of the processes"));
    }
    Node node = graph_.node(id);
    if (edge_of_.contains(id)) {
      node.op = Op::kReceive;
      node.attributes = ReceiveAttributes{node.layout.dtype, node.layout.ne};
      node.sources.clear();
    }
    for (NodeId& source : node.sources) {
      if (ProcessOf(source) != process) {
        return absl::InvalidArgumentError(
            absl::StrCat("on ", DeviceName(id), " reads '", graph_.node(source).name,
                         "' in memory of another process, on ", DeviceName(source)));
      }
      source = node_of_[Index(source)];
    }
    if (node.view_root != kNoNode) node.view_root = node_of_[Index(node.view_root)];
    PlanPart& part = result_.parts[process];
    part.scheduled.devices.push_back(whole_.devices[Index(id)]);
    part.scheduled.split_of.push_back(-1);
    part.scheduled.origin.push_back(whole_.origin[Index(id)]);
    part.places.push_back(plan_.memory.places[Index(id)]);
    node_of_[Index(id)] = part.scheduled.graph.Append(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddSplit(int32_t s) {
    const ScheduledSplit& split = whole_.splits[s];
    for (const ScheduledCopy& copy : split.copies) {
      if (edge_of_.contains(copy.node)) Send(copy.node);
    }
    PlanPart& part = result_.parts[process_of_[split.device]];
    const auto at = static_cast<int32_t>(part.scheduled.splits.size());
    split_of_.push_back(at);
    ScheduledSplit mine;
    mine.device = split.device;
    for (const ScheduledCopy& copy : split.copies) {
      ASSIGN_OR_RETURN(ScheduledCopy mapped, MapCopy(split, copy));
      part.scheduled.split_of[Index(mapped.node)] = at;
      mine.copies.push_back(mapped);
    }
    ReceiveBeforeExperts(mine.copies);
    for (const NodeId id : split.nodes) {
      mine.nodes.push_back(node_of_[Index(id)]);
      part.scheduled.split_of[Index(mine.nodes.back())] = at;
    }
    part.scheduled.splits.push_back(std::move(mine));
    return absl::OkStatus();
  }

  // Ids of used experts may be among what is received.
  static void ReceiveBeforeExperts(std::vector<ScheduledCopy>& copies) {
    const auto received = [](const ScheduledCopy& copy) { return copy.edge != kNoEdge; };
    if (std::none_of(copies.begin(), copies.end(), received)) return;
    std::stable_partition(copies.begin(), copies.end(), [](const ScheduledCopy& copy) {
      return copy.kind != ReplicaKind::kExperts;
    });
  }

  // Behind the split that computes the tensor; what is bound (a cache) leaves before any later
  // split of its process may change it.
  void Send(NodeId copy) {
    const NodeId source = graph_.node(copy).sources[0];
    const int32_t edge = edge_of_.at(copy);
    const ScheduledSend send{node_of_[Index(source)], edge, result_.edges[edge].destination};
    std::vector<ScheduledSplit>& splits = PartOf(source).scheduled.splits;
    const NodeId base = BaseOf(graph_, source);
    const int32_t maker = whole_.split_of[Index(base)];
    if (maker < 0) {
      splits.push_back({context_.MemoryOf(whole_.devices[Index(base)]), {}, {}, {send}});
    } else {
      splits[split_of_[maker]].sends.push_back(send);
    }
  }

  absl::StatusOr<ScheduledCopy> MapCopy(const ScheduledSplit& split, const ScheduledCopy& copy) {
    ScheduledCopy mapped = copy;
    mapped.node = node_of_[Index(copy.node)];
    if (const auto edge = edge_of_.find(copy.node); edge != edge_of_.end()) {
      mapped.edge = edge->second;
      mapped.peer = result_.edges[edge->second].source;
    }
    if (copy.ids == kNoNode) return mapped;
    if (ProcessOf(copy.ids) == ProcessOf(copy.node)) {
      mapped.ids = node_of_[Index(copy.ids)];
      return mapped;
    }
    // Computed elsewhere: as the products that use the experts receive them.
    for (const NodeId id : split.nodes) {
      const Node& node = graph_.node(id);
      if (node.op != Op::kMulMatId || node.sources[0] != copy.node) continue;
      mapped.ids = node_of_[Index(node.sources[2])];
      return mapped;
    }
    return absl::InternalError(
        absl::StrCat("no product of the split reads the experts of ", NodeText(graph_, copy.node)));
  }

  // The inputs of a program have no gaps.
  static void NumberInputs(PlanPart& part) {
    Graph& graph = part.scheduled.graph;
    std::map<int32_t, int32_t> number;
    for (int32_t i = 0; i < graph.size(); ++i) {
      const LeafAttributes* leaf = graph.leaf(NodeId{i});
      if (leaf != nullptr && leaf->kind == LeafKind::kInput) number.emplace(leaf->id, 0);
    }
    for (auto& [id, mine] : number) {
      mine = static_cast<int32_t>(part.inputs.size());
      part.inputs.push_back(id);
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      const LeafAttributes* leaf = graph.leaf(NodeId{i});
      if (leaf == nullptr || leaf->kind != LeafKind::kInput) continue;
      graph.mutable_node(NodeId{i}).attributes =
          LeafAttributes{LeafKind::kInput, number.at(leaf->id)};
    }
  }

  const PlanContext& context_;
  const ExecutionPlan& plan_;
  const ScheduledGraph& whole_;
  const Graph& graph_;
  const absl::Span<const int32_t> process_of_;
  PlanParts result_;
  std::vector<NodeId> node_of_;    // in its part
  std::vector<int32_t> split_of_;  // by split of the plan: in its part
  absl::flat_hash_map<NodeId, int32_t> edge_of_;
};

}  // namespace

absl::StatusOr<PlanParts> CutPlan(const PlanContext& context, const ExecutionPlan& plan,
                                  absl::Span<const int32_t> process_of, int32_t processes) {
  return PartCutter(context, plan, process_of, processes).Run();
}

}  // namespace weft
