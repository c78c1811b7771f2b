#include "coordinator/scheduler/program_compiler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collectives/wire_format.h"
#include "common/program/collective_runner.h"
#include "coordinator/scheduler/detached_collectives.h"
#include "coordinator/scheduler/stream_order.h"

namespace weft {
namespace {

// What one process runs of a plan: all of it, or a part.
struct Share {
  const ScheduledGraph& scheduled;
  absl::Span<const MemoryPlace> places;  // by node of that
  absl::Span<const int32_t> devices;     // of the process, positions in the plan
  absl::Span<const int32_t> process_of;  // by position in the plan; empty: all are here
};

// Works with positions in the plan; only what goes into the program counts the process's own.
class Compiler {
 public:
  Compiler(const PlanContext& context, const ExecutionPlan& plan, const Share& share)
      : context_(context),
        plan_(plan),
        share_(share),
        scheduled_(share.scheduled),
        order_(OrderStreams(context, share.scheduled, plan.copies > 1)),
        local_(static_cast<size_t>(context.device_count()), kNoDevice) {
    for (const int32_t d : share.devices) local_[d] = next_local_++;
    program_.graph = scheduled_.graph;
    program_.event_count = static_cast<int32_t>(order_.events.size());
    for (const NodeId id : context.input().options.observed) observed_.insert(id);
    for (const DetachedCollective& detached : FindDetached(context, share.scheduled)) {
      detached_.insert(detached.node);
      finished_in_[detached.split].push_back(detached.node);
    }
    for (size_t e = 0; e < order_.events.size(); ++e) {
      recorded_at_[{order_.events[e].device, order_.events[e].progress}] = static_cast<int32_t>(e);
    }
  }

  Program Run() {
    for (const int32_t d : share_.devices) AddDevice(d);
    AddCommunicators();
    AddArenas();
    for (int32_t i = 0; i < program_.graph.size(); ++i) PlaceNode(NodeId{i});
    AddStreams();
    for (size_t s = 0; s < scheduled_.splits.size(); ++s) EmitSplit(static_cast<int32_t>(s));
    for (const NodeId output : scheduled_.outputs) program_.outputs.push_back({output});
    Localize();
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

  void AddCommunicators() {
    for (const PlanCommunicator& ranks : context_.input().communicators) {
      ProgramCommunicator& communicator = program_.communicators.emplace_back();
      for (const int32_t d : ranks) {
        const int32_t process = local_[d] == kNoDevice ? share_.process_of[d] : -1;
        communicator.ranks.push_back({process, local_[d], context_.MachineIndex(d)});
      }
    }
  }

  bool Computes(int32_t d) const {
    return std::any_of(scheduled_.splits.begin(), scheduled_.splits.end(),
                       [d](const ScheduledSplit& split) { return split.device == d; });
  }

  void AddMemory(int32_t d, int32_t home) {
    std::vector<int32_t>& memories = program_.devices[local_[d]].memories;
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
      if (local_[device] == kNoDevice) continue;
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
      const MemoryPlace& planned = share_.places[Index(id)];
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
    if (const auto needed = finished_in_.find(s); needed != finished_in_.end()) {
      for (const NodeId id : needed->second) commands.emplace_back(FinishCommand{id});
    }
    EmitNodes(split, commands);
    for (const ScheduledSend& send : split.sends) {
      commands.emplace_back(SendCommand{send.node, program_.places[Index(send.node)],
                                        BytesOf(send.node), send.edge, send.peer});
    }
    RecordAt(split.device, 2 * order_.ordinal[s] + 2);
  }

  void EmitCopy(const ScheduledCopy& copy, std::vector<Command>& commands) {
    const SlotPlace destination = program_.places[Index(copy.node)];
    const int64_t bytes = BytesOf(copy.node);
    if (copy.edge != kNoEdge) {
      commands.emplace_back(ReceiveCommand{copy.node, destination, bytes, copy.edge, copy.peer});
      return;
    }
    const SlotPlace source = program_.places[Index(program_.graph.node(copy.node).sources[0])];
    if (copy.kind == ReplicaKind::kExperts) {
      commands.emplace_back(CopyExpertsCommand{
          copy.node, copy.ids, source, program_.places[Index(copy.ids)], destination, bytes});
    } else {
      commands.emplace_back(CopyCommand{copy.node, source, destination, bytes});
    }
  }

  int64_t BytesOf(NodeId id) const { return *ByteExtent(program_.graph.layout(id)); }

  void EmitCollective(NodeId id, std::vector<Command>& commands) {
    const Node& node = program_.graph.node(id);
    const SlotPlace source =
        node.sources.empty() ? SlotPlace{} : program_.places[Index(node.sources[0])];
    commands.emplace_back(CollectiveCommand{id, source, program_.places[Index(id)], BytesOf(id),
                                            context_.AlgorithmOf(node), detached_.contains(id)});
  }

  // One command, cut after observed nodes and around collectives.
  void EmitNodes(const ScheduledSplit& split, std::vector<Command>& commands) {
    ComputeCommand compute;
    for (const NodeId id : split.nodes) {
      if (IsCollective(program_.graph.node(id).op)) {
        if (!compute.nodes.empty()) commands.emplace_back(std::exchange(compute, {}));
        EmitCollective(id, commands);
      } else {
        compute.nodes.push_back(id);
      }
      const NodeId origin = scheduled_.origin[Index(id)];
      if (origin == kNoNode || !observed_.contains(origin)) continue;
      if (!compute.nodes.empty()) commands.emplace_back(std::exchange(compute, {}));
      commands.emplace_back(ObserveCommand{id, Index(origin)});
    }
    if (!compute.nodes.empty()) commands.emplace_back(std::move(compute));
  }

  // From positions in the plan to those of the process. Where one stream does it all, steps follow
  // each other without copies.
  void Localize() {
    for (ProgramDevice& device : program_.devices) {
      for (int32_t& memory : device.memories) memory = local_[memory];
    }
    for (Slot& slot : program_.slots) {
      if (slot.kind == SlotKind::kArena || slot.kind == SlotKind::kCrossing) {
        slot.id = local_[slot.id];
      }
      slot.device = local_[slot.device];
    }
    for (Stream& stream : program_.streams) stream.device = local_[stream.device];
    const bool whole = share_.devices.size() == local_.size();
    program_.copies = whole || program_.streams.size() > 1 ? plan_.copies : 1;
  }

  const PlanContext& context_;
  const ExecutionPlan& plan_;
  const Share share_;
  const ScheduledGraph& scheduled_;
  const StreamOrder order_;
  std::vector<int32_t> local_;  // by position in the plan: in the process, or kNoDevice
  int32_t next_local_ = 0;
  Program program_;
  std::vector<int32_t> first_slot_;
  std::vector<int32_t> stream_of_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> recorded_at_;
  absl::flat_hash_set<NodeId> observed_;
  absl::flat_hash_set<NodeId> detached_;
  absl::flat_hash_map<int32_t, std::vector<NodeId>> finished_in_;  // by split
};

}  // namespace

absl::StatusOr<Program> CompilePlan(const PlanContext& context, const ExecutionPlan& plan) {
  std::vector<int32_t> devices(static_cast<size_t>(context.device_count()));
  std::iota(devices.begin(), devices.end(), 0);
  return Compiler(context, plan, {plan.scheduled, plan.memory.places, devices, {}}).Run();
}

int64_t FleetProgram::Messages(int32_t from, int32_t to) const {
  return std::count_if(edges.begin(), edges.end(), [&](const FleetEdge& edge) {
    return edge.source == from && edge.destination == to;
  });
}

int64_t FleetProgram::MessageBytes(int32_t from, int32_t to) const {
  int64_t bytes = 0;
  for (const FleetEdge& edge : edges) {
    if (edge.source == from && edge.destination == to) bytes += edge.bytes;
  }
  return bytes;
}

RankTraffic FleetProgram::Ranks(int32_t from, int32_t to) const {
  RankTraffic traffic;
  const Program& program = processes[from].program;
  for (const Stream& stream : program.streams) {
    for (const Command& command : stream.commands) {
      const auto* collective = std::get_if<CollectiveCommand>(&command);
      if (collective == nullptr) continue;
      const auto prepared = PrepareCollective(program, *collective, stream.device);
      for (const Round& round : prepared->rounds) {
        for (const Exchange& exchange : round.exchanges) {
          const int32_t process = prepared->communicator->ranks[exchange.peer].process;
          if (exchange.send.empty() || process != to) continue;
          ++traffic.messages;
          traffic.bytes += WireBytes(prepared->wire, exchange.send.size());
        }
      }
    }
  }
  return traffic;
}

absl::StatusOr<FleetProgram> CompileFleet(const PlanContext& context, const ExecutionPlan& plan,
                                          absl::Span<const std::string> hosts) {
  std::vector<int32_t> process_of;
  for (int32_t d = 0; d < context.device_count(); ++d) {
    const auto host = std::find(hosts.begin(), hosts.end(), context.device(d).host());
    process_of.push_back(host == hosts.end() ? -1 : static_cast<int32_t>(host - hosts.begin()));
  }
  for (const PlanCommunicator& ranks : context.input().communicators) {
    for (const int32_t d : ranks) {
      if (process_of[d] >= 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          context.device(d).name(), " is a rank, but belongs to none of the processes"));
    }
  }
  ASSIGN_OR_RETURN(PlanParts parts,
                   CutPlan(context, plan, process_of, static_cast<int32_t>(hosts.size())));
  FleetProgram fleet;
  for (size_t p = 0; p < hosts.size(); ++p) {
    PlanPart& part = parts.parts[p];
    ProcessProgram process;
    process.host = hosts[p];
    process.program =
        Compiler(context, plan, {part.scheduled, part.places, part.devices, process_of}).Run();
    process.inputs = std::move(part.inputs);
    process.outputs = std::move(part.outputs);
    fleet.processes.push_back(std::move(process));
  }
  fleet.edges = std::move(parts.edges);
  fleet.output_count = static_cast<int32_t>(plan.scheduled.outputs.size());
  return fleet;
}

}  // namespace weft
