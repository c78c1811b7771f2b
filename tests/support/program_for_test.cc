#include "tests/support/program_for_test.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"

namespace weft {
namespace {

constexpr int64_t kMargin = 64;

class Compiler {
 public:
  Compiler(const Graph& graph, std::vector<int32_t> devices, int32_t device_count)
      : devices_(std::move(devices)) {
    program_.graph = graph;
    for (int32_t d = 0; d < device_count; ++d) {
      program_.devices.push_back({absl::StrCat("device", d), {d}});
      program_.streams.push_back({d, {}});
      program_.slots.push_back({SlotKind::kArena, d, d, 0});
    }
  }

  Program Compile() && {
    for (int32_t i = 0; i < program_.graph.size(); ++i) {
      Place(NodeId{i});
      if (program_.graph.Executes(NodeId{i})) Emit(NodeId{i});
      if (program_.graph.node(NodeId{i}).output) program_.outputs.push_back({NodeId{i}});
    }
    return std::move(program_);
  }

 private:
  void Place(NodeId id) {
    const Graph& graph = program_.graph;
    const NodeId root = graph.Root(id);
    if (root != id) {
      devices_[Index(id)] = devices_[Index(root)];
      SlotPlace place = program_.places[Index(root)];
      place.offset += graph.node(id).view_offset;
      program_.places.push_back(place);
      return;
    }
    const int32_t device = devices_[Index(id)];
    const int64_t bytes = *ByteExtent(graph.layout(id));
    if (const LeafAttributes* leaf = graph.leaf(id); leaf != nullptr) {
      static constexpr SlotKind kKinds[] = {SlotKind::kInput, SlotKind::kWeight, SlotKind::kCache,
                                            SlotKind::kPageTable};
      const SlotKind kind = kKinds[static_cast<int>(leaf->kind)];
      program_.slots.push_back({kind, leaf->id, device, bytes});
      program_.places.push_back({static_cast<int32_t>(program_.slots.size()) - 1, 0});
      return;
    }
    Slot& arena = program_.slots[device];
    program_.places.push_back({device, arena.bytes});
    arena.bytes += AlignUp(bytes, kTensorAlignment);
  }

  void Emit(NodeId id) {
    const Node& node = program_.graph.node(id);
    const int32_t device = devices_[Index(id)];
    std::vector<Command>& commands = program_.streams[device].commands;
    for (const NodeId source : node.sources) {
      const int32_t from = devices_[Index(source)];
      if (from == device) continue;
      WEFT_CHECK(node.op == Op::kCopy);
      const int32_t event = program_.event_count++;
      program_.streams[from].commands.emplace_back(RecordCommand{event});
      commands.emplace_back(WaitCommand{event});
      commands.emplace_back(CopyCommand{id, program_.places[Index(source)],
                                        program_.places[Index(id)],
                                        *ByteExtent(program_.graph.layout(id))});
      return;
    }
    if (commands.empty() || !std::holds_alternative<ComputeCommand>(commands.back())) {
      commands.emplace_back(ComputeCommand{});
    }
    std::get<ComputeCommand>(commands.back()).nodes.push_back(id);
  }

  Program program_;
  std::vector<int32_t> devices_;
};

class CopyInserter {
 public:
  CopyInserter(const Graph& graph, const std::vector<int32_t>& devices)
      : graph_(graph), devices_(devices) {}

  PlacedGraph Insert() && {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      Node node = graph_.node(NodeId{i});
      const NodeId root = graph_.Root(NodeId{i});
      const int32_t device = devices_[Index(root)];
      for (NodeId& source : node.sources) source = On(device, source);
      if (node.view_root != kNoNode) node.view_root = result_.node_of[Index(root)];
      result_.node_of.push_back(Append(std::move(node), device));
    }
    return std::move(result_);
  }

 private:
  NodeId Append(Node node, int32_t device) {
    result_.devices.push_back(device);
    return result_.graph.Append(std::move(node));
  }

  NodeId Copy(NodeId source, int32_t device) {
    Node node;
    node.op = Op::kCopy;
    node.attributes = CopyAttributes{result_.graph.layout(source).dtype};
    node.sources = {source};
    node.layout =
        *PackedLayout(result_.graph.layout(source).dtype, result_.graph.layout(source).ne);
    node.name = absl::StrCat("replica of ", Index(source));
    return Append(std::move(node), device);
  }

  // The tensor that shows node `id` of the old graph to readers on `device`.
  NodeId On(int32_t device, NodeId id) {
    const int32_t home = devices_[Index(graph_.Root(id))];
    NodeId here = result_.node_of[Index(id)];
    if (home == device) return here;
    const auto [found, fresh] = replicas_.try_emplace({Index(id), device}, kNoNode);
    if (fresh) {
      if (!IsContiguous(result_.graph.layout(here))) here = Copy(here, home);
      found->second = Copy(here, device);
    }
    return found->second;
  }

  const Graph& graph_;
  const std::vector<int32_t>& devices_;
  PlacedGraph result_;
  std::map<std::pair<int32_t, int32_t>, NodeId> replicas_;
};

}  // namespace

Program CompileForTest(const Graph& graph, std::vector<int32_t> devices, int32_t device_count) {
  WEFT_CHECK(static_cast<int32_t>(devices.size()) == graph.size());
  return Compiler(graph, std::move(devices), device_count).Compile();
}

PlacedGraph InsertCopies(const Graph& graph, const std::vector<int32_t>& devices) {
  WEFT_CHECK(static_cast<int32_t>(devices.size()) == graph.size());
  return CopyInserter(graph, devices).Insert();
}

const SlotBinding& BoundSlots::Find(SlotKind kind, int32_t id) const {
  for (const SlotBinding& binding : bindings) {
    if (binding.kind == kind && binding.id == id) return binding;
  }
  CheckFailed(__FILE__, __LINE__, "binding of that kind and id");
}

BoundSlots BindForTest(const Program& program, const std::vector<Device*>& devices) {
  BoundSlots bound;
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::kWeight && slot.kind != SlotKind::kCache) continue;
    const BufferUsage usage =
        slot.kind == SlotKind::kWeight ? BufferUsage::kWeights : BufferUsage::kAny;
    auto buffer = devices[slot.device]->buffer_type().Allocate(slot.bytes + kMargin, usage);
    WEFT_CHECK(buffer.ok());
    WEFT_CHECK((*buffer)->Fill(0, 0, slot.bytes + kMargin).ok());
    bound.bindings.push_back({slot.kind, slot.id, buffer->get(), kMargin});
    bound.buffers.push_back(*std::move(buffer));
  }
  return bound;
}

}  // namespace weft
