// What each command says about itself: nodes, events, places, sizes. Nothing about order.
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

absl::Status Bad(const absl::AlphaNum& why) {
  return absl::InvalidArgumentError(absl::StrCat(why));
}

// Views that select elements end a chain of replicas after so many; planners need one.
constexpr int kMaxSelections = 8;

class CommandChecker {
 public:
  CommandChecker(const Program& program, const ProgramLimits& limits)
      : program_(program),
        graph_(program.graph),
        limits_(limits),
        definers_(Definers(graph_)),
        listed_(graph_.nodes().size()),
        partial_(graph_.nodes().size()) {}

  absl::Status Check() {
    MarkPartial();
    for (size_t s = 0; s < program_.streams.size(); ++s) {
      const std::vector<Command>& commands = program_.streams[s].commands;
      for (size_t i = 0; i < commands.size(); ++i) {
        const absl::Status status =
            std::visit([this](const auto& command) { return CheckCommand(command); }, commands[i]);
        if (status.ok()) continue;
        return Bad(absl::StrCat("stream ", s, ", command ", i, ": ", status.message()));
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (partial_[Index(output.node)]) return At(output.node, " is an output, but copied in part");
    }
    return absl::OkStatus();
  }

 private:
  void MarkPartial() {
    for (const Stream& stream : program_.streams) {
      for (const Command& command : stream.commands) {
        const auto* experts = std::get_if<CopyExpertsCommand>(&command);
        if (experts != nullptr && CheckNodeId(experts->node).ok()) {
          partial_[Index(experts->node)] = true;
        }
      }
    }
  }
  absl::Status CheckNodeId(NodeId id) const {
    if (Index(id) >= 0 && Index(id) < graph_.size()) return absl::OkStatus();
    return Bad(absl::StrCat("no node ", Index(id)));
  }
  absl::Status At(NodeId id, const absl::AlphaNum& why) const {
    return Bad(absl::StrCat(NodeText(graph_, id), why));
  }
  absl::Status ListOnce(NodeId id) {
    RETURN_IF_ERROR(CheckNodeId(id));
    if (listed_[Index(id)]) return At(id, " is listed twice");
    listed_[Index(id)] = true;
    return absl::OkStatus();
  }
  absl::Status CheckEvent(int32_t event) const {
    if (event >= 0 && event < program_.event_count) return absl::OkStatus();
    return Bad(absl::StrCat("no event ", event));
  }

  absl::Status CheckCommand(const ComputeCommand& command) {
    for (const NodeId id : command.nodes) {
      RETURN_IF_ERROR(ListOnce(id));
      const Op op = graph_.node(id).op;
      if (op == Op::kReceive || IsCollective(op)) return At(id, " is computed by no device");
    }
    return absl::OkStatus();
  }
  absl::Status CheckCommand(const RecordCommand& command) { return CheckEvent(command.event); }
  absl::Status CheckCommand(const WaitCommand& command) { return CheckEvent(command.event); }
  absl::Status CheckCommand(const CopyCommand& command) {
    return CheckCopy(command.node, command.source, command.destination, command.bytes);
  }
  absl::Status CheckCommand(const CopyExpertsCommand& command);
  absl::Status CheckCommand(const ObserveCommand& command);
  absl::Status CheckCommand(const SendCommand& command);
  absl::Status CheckCommand(const ReceiveCommand& command);
  // The rest: CheckProgramCollectives.
  absl::Status CheckCommand(const CollectiveCommand& command) { return ListOnce(command.node); }
  absl::Status CheckCommand(const FinishCommand& command) { return CheckNodeId(command.node); }

  absl::Status CheckCopy(NodeId id, const SlotPlace& source_place, const SlotPlace& destination,
                         int64_t bytes);
  // What edges of one direction have in common. `total` grows by the bytes.
  template <typename EdgeCommand>
  absl::Status CheckEdge(const EdgeCommand& command, const SlotPlace& place,
                         std::set<int32_t>& edges, int64_t& total);
  absl::Status CheckExperts(const CopyExpertsCommand& command);
  absl::Status CheckUsers(const CopyExpertsCommand& command);
  // `ids` names no expert that `all` does not: it is `all`, a replica of it, or part of one.
  bool IsPartOf(NodeId ids, NodeId all);

  const std::vector<NodeId>& UsersOf(NodeId id);
  // The tensor whose elements `id` holds, all of them: through copies and views that keep each.
  NodeId OriginOf(NodeId id);

  const Program& program_;
  const Graph& graph_;
  const ProgramLimits& limits_;
  const std::vector<NodeId> definers_;
  std::vector<bool> listed_;
  std::vector<bool> partial_;  // copied by their experts
  std::set<int32_t> sent_;     // edges
  std::set<int32_t> received_;
  int64_t sent_bytes_ = 0;
  int64_t received_bytes_ = 0;
  std::vector<std::vector<NodeId>> users_;  // of each node; made when first asked for
  std::vector<NodeId> origins_;             // likewise
};

absl::Status CommandChecker::CheckCopy(NodeId id, const SlotPlace& source_place,
                                       const SlotPlace& destination, int64_t bytes) {
  RETURN_IF_ERROR(ListOnce(id));
  const Node& node = graph_.node(id);
  if (node.op != Op::kCopy) return At(id, " is not a copy");
  const NodeId source = node.sources[0];
  if (graph_.layout(source).dtype != node.layout.dtype || !IsContiguous(graph_.layout(source))) {
    return At(id, " does more than move bytes");
  }
  if (source_place != program_.places[Index(source)] || destination != program_.places[Index(id)] ||
      bytes != *ByteExtent(node.layout)) {
    return At(id, ": its places or size are others");
  }
  return absl::OkStatus();
}

absl::Status CommandChecker::CheckCommand(const CopyExpertsCommand& command) {
  RETURN_IF_ERROR(CheckCopy(command.node, command.source, command.destination, command.bytes));
  RETURN_IF_ERROR(CheckNodeId(command.ids));
  RETURN_IF_ERROR(CheckExperts(command));
  return CheckUsers(command);
}

absl::Status CommandChecker::CheckExperts(const CopyExpertsCommand& command) {
  const NodeId source = graph_.node(command.node).sources[0];
  const LeafAttributes* leaf = graph_.leaf(source);
  if (leaf == nullptr || leaf->kind != LeafKind::kWeight || graph_.layout(source).ne[3] != 1) {
    return At(command.node, " is not a copy of a weight of experts");
  }
  if (command.source.slot < 0 || command.destination.slot < 0) {
    return At(command.node, " has no memory");
  }
  if (program_.slots[command.source.slot].device ==
      program_.slots[command.destination.slot].device) {
    return At(command.node, " lies in the same memory as its source");
  }
  const TensorLayout& ids = graph_.layout(command.ids);
  if (ids.dtype != DType::kI32) return At(command.ids, " names no experts, it is not I32");
  if (command.ids_place != program_.places[Index(command.ids)] || command.ids_place.slot < 0) {
    return At(command.ids, ": the place of the ids is another");
  }
  // A view may name one element many times.
  if (*ByteExtent(ids) > limits_.step_input_bytes ||
      ElementCount(ids) > limits_.step_input_bytes / 4) {
    return At(command.ids, " is too large");
  }
  return absl::OkStatus();
}

absl::Status CommandChecker::CheckUsers(const CopyExpertsCommand& command) {
  for (const NodeId user : UsersOf(command.node)) {
    const Node& node = graph_.node(user);
    if (node.op != Op::kMulMatId || node.sources[0] != command.node ||
        node.sources[1] == command.node || !IsPartOf(node.sources[2], command.ids)) {
      return At(command.node, absl::StrCat(" has only the experts of node ", Index(command.ids),
                                           ", but ", NodeText(graph_, user), " reads it"));
    }
  }
  return absl::OkStatus();
}

bool CommandChecker::IsPartOf(NodeId ids, NodeId all) {
  for (int i = 0; i <= kMaxSelections; ++i) {
    if (ids == all || OriginOf(ids) == OriginOf(all)) return true;
    ids = OriginOf(ids);
    if (graph_.node(ids).op != Op::kView) return false;
    ids = graph_.node(ids).sources[0];
  }
  return false;
}

const std::vector<NodeId>& CommandChecker::UsersOf(NodeId id) {
  if (users_.empty()) {
    users_.resize(graph_.nodes().size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        users_[Index(source)].push_back(NodeId{i});
      }
    }
  }
  return users_[Index(id)];
}

NodeId CommandChecker::OriginOf(NodeId id) {
  for (int32_t i = static_cast<int32_t>(origins_.size()); i <= Index(id); ++i) {
    const Node& node = graph_.node(NodeId{i});
    const bool keeps_all = node.op == Op::kCopy || node.op == Op::kReshape ||
                           node.op == Op::kPermute || node.op == Op::kTranspose;
    const bool same = keeps_all && graph_.layout(node.sources[0]).dtype == node.layout.dtype;
    origins_.push_back(same ? origins_[Index(node.sources[0])] : NodeId{i});
  }
  return origins_[Index(id)];
}

absl::Status CommandChecker::CheckCommand(const ObserveCommand& command) {
  RETURN_IF_ERROR(CheckNodeId(command.node));
  if (!graph_.Executes(definers_[Index(command.node)])) {
    return At(command.node, " is not computed");
  }
  if (partial_[Index(command.node)]) return At(command.node, " is copied in part");
  if (program_.places[Index(command.node)].slot < 0) return At(command.node, " has no memory");
  if (!IsContiguous(graph_.layout(command.node))) return At(command.node, " is not packed");
  if (*ByteExtent(graph_.layout(command.node)) > limits_.step_output_bytes) {
    return At(command.node, " is too large to observe");
  }
  return absl::OkStatus();
}

template <typename EdgeCommand>
absl::Status CommandChecker::CheckEdge(const EdgeCommand& command, const SlotPlace& place,
                                       std::set<int32_t>& edges, int64_t& total) {
  if (command.edge < 0 || command.edge >= limits_.edges) {
    return Bad(absl::StrCat("no edge ", command.edge));
  }
  if (command.peer < 0 || command.peer >= limits_.peers) {
    return Bad(absl::StrCat("no process ", command.peer));
  }
  if (!edges.insert(command.edge).second) {
    return Bad(absl::StrCat("edge ", command.edge, " is used twice"));
  }
  const NodeId id = command.node;
  if (place != program_.places[Index(id)] || command.bytes != *ByteExtent(graph_.layout(id))) {
    return At(id, ": its place or size is another");
  }
  if (place.slot < 0) return At(id, " has no memory");
  if (program_.slots[place.slot].kind == SlotKind::kWeight) return At(id, " is a weight");
  if (command.bytes > limits_.step_edge_bytes - total) {
    return At(id, ": the edges carry too much");
  }
  total += command.bytes;
  return absl::OkStatus();
}

absl::Status CommandChecker::CheckCommand(const SendCommand& command) {
  RETURN_IF_ERROR(CheckNodeId(command.node));
  if (partial_[Index(command.node)]) return At(command.node, " is sent, but copied in part");
  if (!IsContiguous(graph_.layout(command.node))) return At(command.node, " is not packed");
  return CheckEdge(command, command.source, sent_, sent_bytes_);
}

absl::Status CommandChecker::CheckCommand(const ReceiveCommand& command) {
  RETURN_IF_ERROR(ListOnce(command.node));
  if (graph_.node(command.node).op != Op::kReceive) return At(command.node, " is not received");
  return CheckEdge(command, command.destination, received_, received_bytes_);
}

}  // namespace

absl::Status CheckProgramCommands(const Program& program, const ProgramLimits& limits) {
  return CommandChecker(program, limits).Check();
}

}  // namespace weft
