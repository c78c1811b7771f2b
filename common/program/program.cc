#include "common/program/program.h"

#include "common/program/program_checks.h"

namespace weft {

SlotKind SlotKindOf(LeafKind kind) {
  switch (kind) {
    case LeafKind::kInput:
      return SlotKind::kInput;
    case LeafKind::kWeight:
      return SlotKind::kWeight;
    case LeafKind::kCache:
      return SlotKind::kCache;
    case LeafKind::kPageTable:
      return SlotKind::kPageTable;
  }
  return SlotKind::kArena;  // no leaf lies there, so checks against it fail
}

std::vector<int32_t> StreamOfDevice(const Program& program) {
  std::vector<int32_t> stream_of(program.devices.size(), -1);
  for (size_t i = 0; i < program.streams.size(); ++i) {
    stream_of[program.streams[i].device] = static_cast<int32_t>(i);
  }
  return stream_of;
}

std::vector<NodeId> Definers(const Graph& graph) {
  std::vector<NodeId> definers;
  definers.reserve(graph.nodes().size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId{i});
    definers.push_back(GetOpInfo(node.op).is_view ? definers[Index(node.sources[0])] : NodeId{i});
  }
  return definers;
}

std::vector<int32_t> StreamOfOutputs(const Program& program) {
  std::vector<int32_t> stream_of_node(program.graph.nodes().size(), -1);
  for (size_t s = 0; s < program.streams.size(); ++s) {
    const auto stream = static_cast<int32_t>(s);
    for (const Command& command : program.streams[s].commands) {
      if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
        for (const NodeId id : compute->nodes) stream_of_node[Index(id)] = stream;
      } else if (const auto* copy = std::get_if<CopyCommand>(&command)) {
        stream_of_node[Index(copy->node)] = stream;
      } else if (const auto* receive = std::get_if<ReceiveCommand>(&command)) {
        stream_of_node[Index(receive->node)] = stream;
      } else if (const auto* collective = std::get_if<CollectiveCommand>(&command)) {
        stream_of_node[Index(collective->node)] = stream;
      }
    }
  }
  const std::vector<NodeId> definers = Definers(program.graph);
  const std::vector<int32_t> stream_of_device = StreamOfDevice(program);
  std::vector<int32_t> streams;
  for (const ProgramOutput& output : program.outputs) {
    const NodeId definer = definers[Index(output.node)];
    const SlotPlace& place = program.places[Index(output.node)];
    streams.push_back(program.graph.IsLeaf(definer)
                          ? stream_of_device[program.slots[place.slot].device]
                          : stream_of_node[Index(definer)]);
  }
  return streams;
}

int32_t RankOfDevice(const ProgramCommunicator& communicator, int32_t device) {
  for (size_t r = 0; r < communicator.ranks.size(); ++r) {
    if (communicator.ranks[r].device == device) return static_cast<int32_t>(r);
  }
  return -1;
}

}  // namespace weft
