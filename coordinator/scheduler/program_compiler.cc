#include "coordinator/scheduler/program_compiler.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/stream_order.h"

namespace weft {
namespace {

class Compiler {
 public:
  Compiler(const PlanContext& context, const ExecutionPlan& plan)
      : context_(context),
        plan_(plan),
        scheduled_(plan.scheduled),
        order_(OrderStreams(context, plan)) {
    program_.graph = scheduled_.graph;
    program_.copies = plan.copies;
    program_.event_count = static_cast<int32_t>(order_.events.size());
    for (const NodeId id : context.input().options.observed) observed_.insert(id);
    for (size_t e = 0; e < order_.events.size(); ++e) {
      recorded_at_[{order_.events[e].device, order_.events[e].progress}] = static_cast<int32_t>(e);
    }
  }

  absl::StatusOr<Program> Run() {
    for (int32_t d = 0; d < context_.device_count(); ++d) AddDevice(d);
    AddArenas();
    for (int32_t i = 0; i < program_.graph.size(); ++i) PlaceNode(NodeId{i});
    AddStreams();
    for (size_t s = 0; s < scheduled_.splits.size(); ++s) EmitSplit(static_cast<int32_t>(s));
    for (int32_t d = 0; d < context_.device_count(); ++d) {
      for (const int32_t event : order_.final_waits[d])
        Commands(d).emplace_back(WaitCommand{event});
    }
    for (const NodeId output : scheduled_.outputs) program_.outputs.push_back({output});
    return std::move(program_);
  }

 private:
  // The memory of its results first, then that of others which its sources lie in. One that
  // computes nothing shares nothing, so that it does not keep steps from overlapping.
  void AddDevice(int32_t d) {
    ProgramDevice device;
    device.name = context_.device(d).name();
    device.memories.push_back(Computes(d) ? context_.MemoryOf(d) : d);
    program_.devices.push_back(std::move(device));
  }

  bool Computes(int32_t d) const {
    return std::any_of(scheduled_.splits.begin(), scheduled_.splits.end(),
                       [d](const ScheduledSplit& split) { return split.device == d; });
  }

  void AddMemory(int32_t d, int32_t home) {
    std::vector<int32_t>& memories = program_.devices[d].memories;
    if (std::find(memories.begin(), memories.end(), home) == memories.end()) {
      memories.push_back(home);
    }
  }

  // Slots of pool p begin at first_slot_[p], a slot per chunk.
  void AddArenas() {
    const int32_t count = context_.device_count();
    for (size_t p = 0; p < plan_.memory.pools.size(); ++p) {
      first_slot_.push_back(static_cast<int32_t>(program_.slots.size()));
      const auto device = static_cast<int32_t>(p) % count;
      const SlotKind kind =
          static_cast<int32_t>(p) < count ? SlotKind::kArena : SlotKind::kCrossing;
      for (const int64_t bytes : plan_.memory.pools[p].chunk_bytes) {
        program_.slots.push_back({kind, device, device, bytes});
      }
    }
  }

  void PlaceNode(NodeId id) {
    const Graph& graph = program_.graph;
    SlotPlace place;
    if (const LeafAttributes* leaf = graph.leaf(id)) {
      const int32_t device = context_.MemoryOf(scheduled_.devices[Index(id)]);
      const BufferType& type = context_.device(device).buffer_type();
      place = {static_cast<int32_t>(program_.slots.size()), 0};
      const int64_t bytes = leaf->kind == LeafKind::kInput ? *ByteExtent(graph.layout(id))
                                                           : type.TensorBytes(graph.layout(id));
      program_.slots.push_back({SlotKindOf(leaf->kind), leaf->id, device, bytes});
    } else if (graph.Root(id) != id) {
      place = program_.places[Index(graph.Root(id))];
      place.offset += graph.node(id).view_offset;
    } else {
      const MemoryPlace& planned = plan_.memory.places[Index(id)];
      place = {first_slot_[planned.pool] + planned.chunk, planned.offset};
    }
    program_.places.push_back(place);
  }

  int32_t HomeOf(NodeId id) const { return program_.slots[program_.places[Index(id)].slot].device; }

  void AddStreams() {
    std::vector<bool> used(static_cast<size_t>(context_.device_count()));
    for (const ScheduledSplit& split : scheduled_.splits) {
      used[split.device] = true;
      for (const NodeId id : split.nodes) {
        AddMemory(split.device, HomeOf(id));
        for (const NodeId source : program_.graph.node(id).sources) {
          AddMemory(split.device, HomeOf(source));
        }
      }
    }
    for (const Slot& slot : program_.slots) {
      if (slot.kind != SlotKind::kWeight) used[slot.device] = true;
    }
    stream_of_.assign(used.size(), -1);
    for (size_t d = 0; d < used.size(); ++d) {
      if (!used[d]) continue;
      stream_of_[d] = static_cast<int32_t>(program_.streams.size());
      program_.streams.push_back({static_cast<int32_t>(d), {}});
      RecordAt(static_cast<int32_t>(d), 0);
    }
  }

  std::vector<Command>& Commands(int32_t device) {
    return program_.streams[stream_of_[device]].commands;
  }

  void RecordAt(int32_t device, int32_t progress) {
    const auto found = recorded_at_.find({device, progress});
    if (found == recorded_at_.end()) return;
    Commands(device).emplace_back(RecordCommand{found->second});
  }

  void EmitSplit(int32_t s) {
    const ScheduledSplit& split = scheduled_.splits[s];
    std::vector<Command>& commands = Commands(split.device);
    for (const int32_t event : order_.waits[s]) commands.emplace_back(WaitCommand{event});
    for (const ScheduledCopy& copy : split.copies) EmitCopy(copy, commands);
    RecordAt(split.device, 2 * order_.ordinal[s] + 1);
    EmitNodes(split, commands);
    RecordAt(split.device, 2 * order_.ordinal[s] + 2);
  }

  void EmitCopy(const ScheduledCopy& copy, std::vector<Command>& commands) {
    const Graph& graph = program_.graph;
    const SlotPlace source = program_.places[Index(graph.node(copy.node).sources[0])];
    const SlotPlace destination = program_.places[Index(copy.node)];
    const int64_t bytes = *ByteExtent(graph.layout(copy.node));
    if (copy.kind == ReplicaKind::kExperts) {
      commands.emplace_back(CopyExpertsCommand{
          copy.node, copy.ids, source, program_.places[Index(copy.ids)], destination, bytes});
    } else {
      commands.emplace_back(CopyCommand{copy.node, source, destination, bytes});
    }
  }

  // One command, cut after observed nodes.
  void EmitNodes(const ScheduledSplit& split, std::vector<Command>& commands) {
    ComputeCommand compute;
    for (const NodeId id : split.nodes) {
      compute.nodes.push_back(id);
      const NodeId origin = scheduled_.origin[Index(id)];
      if (origin == kNoNode || !observed_.contains(origin)) continue;
      commands.emplace_back(std::exchange(compute, {}));
      commands.emplace_back(ObserveCommand{id, Index(origin)});
    }
    if (!compute.nodes.empty()) commands.emplace_back(std::move(compute));
  }

  const PlanContext& context_;
  const ExecutionPlan& plan_;
  const ScheduledGraph& scheduled_;
  const StreamOrder order_;
  Program program_;
  std::vector<int32_t> first_slot_;
  std::vector<int32_t> stream_of_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> recorded_at_;
  absl::flat_hash_set<NodeId> observed_;
};

}  // namespace

absl::StatusOr<Program> CompilePlan(const PlanContext& context, const ExecutionPlan& plan) {
  return Compiler(context, plan).Run();
}

}  // namespace weft
