#include "tests/support/program_for_test.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"

namespace weft {
namespace {

constexpr int64_t kMargin = 64;

class Compiler {
 public:
  Compiler(const Graph& graph, const std::vector<int32_t>& devices, const MachineForTest& machine)
      : machine_(machine), graph_(program_.graph) {
    program_.graph = graph;
    program_.devices = machine.devices;
    program_.copies = machine.overlap ? kMaxStepsInFlight : 1;
    program_.communicators = machine.communicators;
    for (int32_t d = 0; d < static_cast<int32_t>(machine.devices.size()); ++d) {
      program_.streams.push_back({d, {}});
      arena_of_.push_back(static_cast<int32_t>(program_.slots.size()));
      if (Home(d) == d) program_.slots.push_back({SlotKind::kArena, d, d, 0});
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      runs_on_.push_back(DeviceForTest(graph, devices, machine, NodeId{i}));
      const bool view = GetOpInfo(graph.node(NodeId{i}).op).is_view;
      definers_.push_back(view ? definers_[Index(graph.node(NodeId{i}).sources[0])] : NodeId{i});
    }
    FindCrossings();
    waiting_experts_.resize(graph.nodes().size());
  }

  Program Compile() && {
    for (int32_t i = 0; i < graph_.size(); ++i) Place(NodeId{i});
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_.Executes(NodeId{i})) Emit(NodeId{i});
      if (graph_.node(NodeId{i}).output) program_.outputs.push_back({NodeId{i}});
    }
    while (!under_way_.empty()) Finish(under_way_.begin()->first);
    return std::move(program_);
  }

 private:
  int32_t Home(int32_t device) const { return machine_.devices[device].memories[0]; }
  int32_t HomeOf(NodeId id) const { return Home(runs_on_[Index(graph_.Root(id))]); }
  bool Reaches(int32_t device, NodeId id) const {
    const std::vector<int32_t>& memories = machine_.devices[device].memories;
    return std::find(memories.begin(), memories.end(), HomeOf(id)) != memories.end();
  }

  void FindCrossings() {
    crosses_.resize(graph_.nodes().size());
    for (int32_t i = 0; machine_.overlap && i < graph_.size(); ++i) {
      if (!graph_.Executes(NodeId{i})) continue;
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        if (HomeOf(source) != runs_on_[i]) crosses_[Index(graph_.Root(source))] = true;
      }
    }
  }

  void Place(NodeId id) {
    const NodeId root = graph_.Root(id);
    if (root != id) {
      SlotPlace place = program_.places[Index(root)];
      place.offset += graph_.node(id).view_offset;
      program_.places.push_back(place);
      return;
    }
    const int32_t home = HomeOf(id);
    const int64_t bytes = *ByteExtent(graph_.layout(id));
    const LeafAttributes* leaf = graph_.leaf(id);
    if (leaf != nullptr || crosses_[Index(id)]) {
      program_.slots.push_back(leaf != nullptr ? Slot{SlotKindOf(leaf->kind), leaf->id, home, bytes}
                                               : Slot{SlotKind::kCrossing, home, home, bytes});
      program_.places.push_back({static_cast<int32_t>(program_.slots.size()) - 1, 0});
      return;
    }
    Slot& arena = program_.slots[arena_of_[home]];
    program_.places.push_back({arena_of_[home], arena.bytes});
    arena.bytes += AlignUp(bytes, kTensorAlignment);
  }

  std::vector<Command>& CommandsOf(int32_t device) { return program_.streams[device].commands; }

  // Where `id` is the result of a detached collective that is not finished yet, finishes it.
  void Finish(NodeId id) {
    const auto found = under_way_.find(graph_.Root(id));
    if (found == under_way_.end()) return;
    CommandsOf(found->second).emplace_back(FinishCommand{found->first});
    under_way_.erase(found);
  }

  // Later commands of `device` come after what writes `id`.
  void WaitFor(NodeId id, int32_t device) {
    const NodeId definer = definers_[Index(id)];
    const LeafAttributes* leaf = graph_.leaf(definer);
    if (leaf != nullptr && leaf->kind == LeafKind::kWeight) return;
    const int32_t from = leaf != nullptr ? HomeOf(definer) : runs_on_[Index(definer)];
    if (from == device || !waited_.emplace(definer, device).second) return;
    const int32_t event = program_.event_count++;
    CommandsOf(from).emplace_back(RecordCommand{event});
    CommandsOf(device).emplace_back(WaitCommand{event});
  }

  void Emit(NodeId id) {
    const Node& node = graph_.node(id);
    const int32_t device = runs_on_[Index(id)];
    if (WaitsForIds(id)) return;
    for (const NodeId source : node.sources) {
      Finish(source);
      if (waiting_experts_[Index(source)]) EmitExperts(source, node.sources[2]);
      if (!IsMessage(id)) WaitFor(source, device);
    }
    std::vector<Command>& commands = CommandsOf(device);
    if (IsCollective(node.op)) {
      const SlotPlace source =
          node.sources.empty() ? SlotPlace{} : program_.places[Index(node.sources[0])];
      commands.emplace_back(CollectiveCommand{id, source, program_.places[Index(id)],
                                              *ByteExtent(graph_.layout(id)), machine_.algorithm,
                                              machine_.detached});
      if (machine_.detached) under_way_.emplace(id, device);
      return;
    }
    const NodeId first = node.sources.empty() ? id : node.sources[0];
    if (!Reaches(device, first)) {
      WEFT_CHECK(node.op == Op::kCopy);
      if (IsMessage(id)) return EmitMessage(id, first);
      commands.emplace_back(CopyCommand{id, program_.places[Index(first)],
                                        program_.places[Index(id)],
                                        *ByteExtent(graph_.layout(id))});
      return;
    }
    if (commands.empty() || !std::holds_alternative<ComputeCommand>(commands.back())) {
      commands.emplace_back(ComputeCommand{});
    }
    std::get<ComputeCommand>(commands.back()).nodes.push_back(id);
  }

  // A copy that is sent and received.
  bool IsMessage(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!machine_.edges || node.op != Op::kCopy) return false;
    const LeafAttributes* leaf = graph_.leaf(graph_.Root(node.sources[0]));
    const bool weight = leaf != nullptr && leaf->kind == LeafKind::kWeight;
    return !weight && !Reaches(runs_on_[Index(id)], node.sources[0]);
  }

  void EmitMessage(NodeId id, NodeId source) {
    const NodeId definer = definers_[Index(source)];
    const int32_t from = graph_.IsLeaf(definer) ? HomeOf(definer) : runs_on_[Index(definer)];
    const int64_t bytes = *ByteExtent(graph_.layout(id));
    CommandsOf(from).emplace_back(
        SendCommand{source, program_.places[Index(source)], bytes, edge_count_, 0});
    CommandsOf(runs_on_[Index(id)])
        .emplace_back(ReceiveCommand{id, program_.places[Index(id)], bytes, edge_count_++, 0});
    Node& node = program_.graph.mutable_node(id);
    node.op = Op::kReceive;
    node.attributes = ReceiveAttributes{node.layout.dtype, node.layout.ne};
    node.sources.clear();
  }

  // Marks a copy that is done by experts, once they are known.
  bool WaitsForIds(NodeId id) {
    const Node& node = graph_.node(id);
    if (!machine_.copy_experts || node.op != Op::kCopy) return false;
    const LeafAttributes* leaf = graph_.leaf(node.sources[0]);
    if (leaf == nullptr || leaf->kind != LeafKind::kWeight || node.layout.ne[3] != 1 ||
        Reaches(runs_on_[Index(id)], node.sources[0]) || node.output) {
      return false;
    }
    NodeId ids = kNoNode;
    for (const Node& user : graph_.nodes()) {
      if (std::find(user.sources.begin(), user.sources.end(), id) == user.sources.end()) continue;
      if (user.op != Op::kMulMatId || user.sources[0] != id) return false;
      if (ids != kNoNode && user.sources[2] != ids) return false;
      ids = user.sources[2];
    }
    waiting_experts_[Index(id)] = ids != kNoNode;
    return ids != kNoNode;
  }

  void EmitExperts(NodeId id, NodeId ids) {
    // Half of them read the ids where they come from.
    const Node& node = graph_.node(ids);
    if (Index(ids) % 2 == 0 && node.op == Op::kCopy) ids = node.sources[0];
    const int32_t device = runs_on_[Index(id)];
    WaitFor(ids, device);
    CommandsOf(device).emplace_back(CopyExpertsCommand{
        id, ids, program_.places[Index(graph_.node(id).sources[0])], program_.places[Index(ids)],
        program_.places[Index(id)], *ByteExtent(graph_.layout(id))});
    waiting_experts_[Index(id)] = false;
  }

  const MachineForTest& machine_;
  Program program_;
  const Graph& graph_;
  std::vector<int32_t> arena_of_;  // slot, by device with memory
  std::vector<int32_t> runs_on_;
  std::vector<NodeId> definers_;
  std::vector<bool> crosses_;
  std::vector<bool> waiting_experts_;
  int32_t edge_count_ = 0;
  std::set<std::pair<NodeId, int32_t>> waited_;
  std::map<NodeId, int32_t> under_way_;  // detached collectives: their device
};

}  // namespace

MachineForTest SeparateMachine(int32_t device_count) {
  MachineForTest machine;
  for (int32_t d = 0; d < device_count; ++d) {
    machine.devices.push_back({absl::StrCat("device", d), {d}});
  }
  return machine;
}

MachineForTest SharingMachine() {
  MachineForTest machine;
  machine.devices = {{"host", {0}}, {"accel", {0}}, {"gpu", {2, 0}}};
  return machine;
}

int32_t DeviceForTest(const Graph& graph, const std::vector<int32_t>& devices,
                      const MachineForTest& machine, NodeId id) {
  const int32_t device = devices[Index(id)];
  const NodeId root = graph.Root(id);
  const int32_t home = machine.devices[devices[Index(root)]].memories[0];
  if (graph.IsLeaf(id)) return home;
  if (root == id) return device;
  const std::vector<int32_t>& memories = machine.devices[device].memories;
  const bool reaches = std::find(memories.begin(), memories.end(), home) != memories.end();
  return graph.Executes(id) && reaches ? device : devices[Index(root)];
}

Program CompileForTest(const Graph& graph, const std::vector<int32_t>& devices,
                       const MachineForTest& machine) {
  WEFT_CHECK(static_cast<int32_t>(devices.size()) == graph.size());
  return Compiler(graph, devices, machine).Compile();
}

Program CompileForTest(const Graph& graph, const std::vector<int32_t>& devices,
                       int32_t device_count) {
  return CompileForTest(graph, devices, SeparateMachine(device_count));
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
