#include "rpc_backend/protocol/program_codec.h"

#include <utility>

#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "google/protobuf/arena.h"
#include "proto/program.pb.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/embedded_message.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/graph_message.h"

namespace weft {
namespace {

// --- Slots and places ---

void Put(const SlotPlace& place, proto::SlotPlace& message) {
  message.set_slot(place.slot + 1);
  message.set_offset(place.offset);
}
absl::StatusOr<SlotPlace> Take(absl::string_view name, const proto::SlotPlace& message) {
  const SlotPlace place{message.slot() - 1, message.offset()};
  if (message.slot() < 0) return BadField(name, message.slot(), "is negative");
  if (place.offset < 0) return BadField(name, place.offset, "is a negative offset");
  return place;
}

absl::StatusOr<Slot> TakeSlot(const proto::Slot& message) {
  Slot slot;
  RETURN_IF_ERROR(CheckField("kind", message.kind(), 0, static_cast<int64_t>(SlotKind::kCrossing)));
  slot.kind = static_cast<SlotKind>(message.kind());
  slot.id = message.id();
  slot.device = message.device();
  slot.bytes = message.bytes();
  RETURN_IF_ERROR(CheckNotNegative("id", slot.id));
  RETURN_IF_ERROR(CheckNotNegative("device", slot.device));
  RETURN_IF_ERROR(CheckNotNegative("bytes", slot.bytes));
  return slot;
}

absl::StatusOr<ProgramDevice> TakeDevice(const proto::ProgramDevice& message,
                                         const WireLimits& limits) {
  ProgramDevice device;
  if (static_cast<int64_t>(message.name().size()) > limits.program.name_bytes ||
      !IsCleanText(message.name())) {
    return BadField("name", absl::StrCat("'", CleanText(message.name(), 64), "'"),
                    absl::StrCat("not a line of at most ", limits.program.name_bytes, " bytes"));
  }
  device.name = message.name();
  for (const int32_t memory : message.memories()) {
    RETURN_IF_ERROR(CheckField("memories", memory, 0, limits.program.devices - 1));
    device.memories.push_back(memory);
  }
  return device;
}

// --- Commands: one pair of functions for each kind ---

void Put(const ComputeCommand& compute, proto::Command& message) {
  proto::ComputeCommand& inner = *message.mutable_compute();
  for (const NodeId id : compute.nodes) inner.add_nodes(Index(id));
}
absl::StatusOr<Command> Take(const proto::ComputeCommand& message) {
  ComputeCommand compute;
  compute.nodes.reserve(static_cast<size_t>(message.nodes_size()));
  for (const int32_t id : message.nodes()) {
    RETURN_IF_ERROR(CheckNotNegative("nodes", id));
    compute.nodes.push_back(NodeId{id});
  }
  return Command(std::move(compute));
}

void Put(const CopyCommand& copy, proto::Command& message) {
  proto::CopyCommand& inner = *message.mutable_copy();
  inner.set_node(Index(copy.node));
  Put(copy.source, *inner.mutable_source());
  Put(copy.destination, *inner.mutable_destination());
  inner.set_bytes(copy.bytes);
}
absl::StatusOr<Command> Take(const proto::CopyCommand& message) {
  CopyCommand copy;
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  copy.node = NodeId{message.node()};
  ASSIGN_OR_RETURN(copy.source, Take("source", message.source()));
  ASSIGN_OR_RETURN(copy.destination, Take("destination", message.destination()));
  RETURN_IF_ERROR(CheckNotNegative("bytes", message.bytes()));
  copy.bytes = message.bytes();
  return Command(copy);
}

void Put(const CopyExpertsCommand& copy, proto::Command& message) {
  proto::CopyExpertsCommand& inner = *message.mutable_copy_experts();
  inner.set_node(Index(copy.node));
  inner.set_ids(Index(copy.ids));
  Put(copy.source, *inner.mutable_source());
  Put(copy.ids_place, *inner.mutable_ids_place());
  Put(copy.destination, *inner.mutable_destination());
  inner.set_bytes(copy.bytes);
}
absl::StatusOr<Command> Take(const proto::CopyExpertsCommand& message) {
  CopyExpertsCommand copy;
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  RETURN_IF_ERROR(CheckNotNegative("ids", message.ids()));
  copy.node = NodeId{message.node()};
  copy.ids = NodeId{message.ids()};
  ASSIGN_OR_RETURN(copy.source, Take("source", message.source()));
  ASSIGN_OR_RETURN(copy.ids_place, Take("ids_place", message.ids_place()));
  ASSIGN_OR_RETURN(copy.destination, Take("destination", message.destination()));
  RETURN_IF_ERROR(CheckNotNegative("bytes", message.bytes()));
  copy.bytes = message.bytes();
  return Command(copy);
}

void Put(const ObserveCommand& observe, proto::Command& message) {
  message.mutable_observe()->set_node(Index(observe.node));
  message.mutable_observe()->set_tag(observe.tag);
}
absl::StatusOr<Command> Take(const proto::ObserveCommand& message) {
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  return Command(ObserveCommand{NodeId{message.node()}, message.tag()});
}

// What sends and receives have in common.
template <typename EdgeCommand, typename Message>
void PutEdge(const EdgeCommand& edge, Message& message) {
  message.set_node(Index(edge.node));
  message.set_bytes(edge.bytes);
  message.set_edge(edge.edge);
  message.set_peer(edge.peer);
}
template <typename EdgeCommand, typename Message>
absl::Status TakeEdge(const Message& message, EdgeCommand& edge) {
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  RETURN_IF_ERROR(CheckNotNegative("bytes", message.bytes()));
  RETURN_IF_ERROR(CheckNotNegative("edge", message.edge()));
  RETURN_IF_ERROR(CheckNotNegative("peer", message.peer()));
  edge.node = NodeId{message.node()};
  edge.bytes = message.bytes();
  edge.edge = message.edge();
  edge.peer = message.peer();
  return absl::OkStatus();
}

void Put(const SendCommand& send, proto::Command& message) {
  PutEdge(send, *message.mutable_send());
  Put(send.source, *message.mutable_send()->mutable_source());
}
absl::StatusOr<Command> Take(const proto::SendCommand& message) {
  SendCommand send;
  RETURN_IF_ERROR(TakeEdge(message, send));
  ASSIGN_OR_RETURN(send.source, Take("source", message.source()));
  return Command(send);
}

void Put(const ReceiveCommand& receive, proto::Command& message) {
  PutEdge(receive, *message.mutable_receive());
  Put(receive.destination, *message.mutable_receive()->mutable_destination());
}
absl::StatusOr<Command> Take(const proto::ReceiveCommand& message) {
  ReceiveCommand receive;
  RETURN_IF_ERROR(TakeEdge(message, receive));
  ASSIGN_OR_RETURN(receive.destination, Take("destination", message.destination()));
  return Command(receive);
}

void Put(const CollectiveCommand& collective, proto::Command& message) {
  proto::CollectiveCommand& inner = *message.mutable_collective();
  inner.set_node(Index(collective.node));
  Put(collective.source, *inner.mutable_source());
  Put(collective.destination, *inner.mutable_destination());
  inner.set_bytes(collective.bytes);
  inner.set_algorithm(static_cast<uint32_t>(collective.algorithm));
  inner.set_detached(collective.detached);
}
absl::StatusOr<Command> Take(const proto::CollectiveCommand& message) {
  CollectiveCommand collective;
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  collective.node = NodeId{message.node()};
  ASSIGN_OR_RETURN(collective.source, Take("source", message.source()));
  ASSIGN_OR_RETURN(collective.destination, Take("destination", message.destination()));
  RETURN_IF_ERROR(CheckNotNegative("bytes", message.bytes()));
  collective.bytes = message.bytes();
  RETURN_IF_ERROR(CheckField("algorithm", message.algorithm(), 0, kCollectiveAlgorithmCount - 1));
  collective.algorithm = static_cast<CollectiveAlgorithm>(message.algorithm());
  collective.detached = message.detached();
  return Command(collective);
}

void Put(const FinishCommand& finish, proto::Command& message) {
  message.mutable_finish()->set_node(Index(finish.node));
}
absl::StatusOr<Command> Take(const proto::FinishCommand& message) {
  RETURN_IF_ERROR(CheckNotNegative("node", message.node()));
  return Command(FinishCommand{NodeId{message.node()}});
}

void Put(const RecordCommand& record, proto::Command& message) {
  message.mutable_record()->set_event(record.event);
}
void Put(const WaitCommand& wait, proto::Command& message) {
  message.mutable_wait()->set_event(wait.event);
}
template <typename EventUser>
absl::StatusOr<Command> TakeEvent(const proto::EventCommand& message) {
  RETURN_IF_ERROR(CheckNotNegative("event", message.event()));
  return Command(EventUser{message.event()});
}

absl::StatusOr<Command> TakeCommand(const proto::Command& message) {
  switch (message.command_case()) {
    case proto::Command::kCompute:
      return Take(message.compute());
    case proto::Command::kCopy:
      return Take(message.copy());
    case proto::Command::kCopyExperts:
      return Take(message.copy_experts());
    case proto::Command::kObserve:
      return Take(message.observe());
    case proto::Command::kSend:
      return Take(message.send());
    case proto::Command::kReceive:
      return Take(message.receive());
    case proto::Command::kCollective:
      return Take(message.collective());
    case proto::Command::kFinish:
      return Take(message.finish());
    case proto::Command::kRecord:
      return TakeEvent<RecordCommand>(message.record());
    case proto::Command::kWait:
      return TakeEvent<WaitCommand>(message.wait());
    default:
      return BadField("command", message.command_case(), "no such command");
  }
}

absl::StatusOr<Stream> TakeStream(const proto::Stream& message, const WireLimits& limits) {
  Stream stream;
  RETURN_IF_ERROR(CheckField("device", message.device(), 0, limits.program.devices - 1));
  stream.device = message.device();
  stream.commands.reserve(static_cast<size_t>(message.commands_size()));
  for (int i = 0; i < message.commands_size(); ++i) {
    absl::StatusOr<Command> command = TakeCommand(message.commands(i));
    if (!command.ok()) return InPlace(absl::StrCat("command ", i), command.status());
    stream.commands.push_back(*std::move(command));
  }
  return stream;
}

absl::StatusOr<ProgramCommunicator> TakeCommunicator(const proto::Communicator& message,
                                                     const ProgramLimits& limits) {
  ProgramCommunicator communicator;
  RETURN_IF_ERROR(CheckField("ranks", message.ranks_size(), 1, kMaxRanks));
  for (const proto::CommunicatorRank& rank : message.ranks()) {
    RETURN_IF_ERROR(CheckField("process", rank.process(), 0, limits.peers));
    RETURN_IF_ERROR(CheckField("device", rank.device(), 0, limits.devices));
    RETURN_IF_ERROR(CheckNotNegative("host", rank.host()));
    communicator.ranks.push_back({rank.process() - 1, rank.device() - 1, rank.host()});
  }
  return communicator;
}

void Put(const ProgramCommunicator& communicator, proto::Communicator& message) {
  for (const CommunicatorRank& rank : communicator.ranks) {
    proto::CommunicatorRank& inner = *message.add_ranks();
    inner.set_process(rank.process + 1);
    inner.set_device(rank.device + 1);
    inner.set_host(rank.host);
  }
}

// --- Lists ---

// take(element) of every element; errors name the kind and the position.
template <typename Value, typename List, typename TakeOne>
absl::Status TakeList(absl::string_view kind, const List& list, std::vector<Value>& values,
                      const TakeOne& take) {
  values.reserve(static_cast<size_t>(list.size()));
  for (int i = 0; i < list.size(); ++i) {
    absl::StatusOr<Value> value = take(list.Get(i));
    if (!value.ok()) return InPlace(absl::StrCat(kind, " ", i), value.status());
    values.push_back(*std::move(value));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const proto::Program& message, const ProgramLimits& limits) {
  const auto count = [](absl::string_view name, int64_t value, int64_t most) {
    return CheckField(name, value, 0, most);
  };
  RETURN_IF_ERROR(count("devices", message.devices_size(), limits.devices));
  RETURN_IF_ERROR(count("slots", message.slots_size(), limits.slots));
  RETURN_IF_ERROR(count("places", message.places_size(), limits.nodes));
  RETURN_IF_ERROR(count("streams", message.streams_size(), limits.devices));
  RETURN_IF_ERROR(count("outputs", message.outputs_size(), limits.outputs));
  RETURN_IF_ERROR(count("communicators", message.communicators_size(), limits.communicators));
  int64_t commands = 0;
  for (const proto::Stream& stream : message.streams()) commands += stream.commands_size();
  RETURN_IF_ERROR(count("commands", commands, limits.commands));
  RETURN_IF_ERROR(count("event_count", message.event_count(), limits.events));
  return CheckField("copies", message.copies(), 1, kMaxStepsInFlight);
}

absl::StatusOr<Program> DecodeProgramMessage(const proto::Program& message,
                                             const WireLimits& limits) {
  Program program;
  RETURN_IF_ERROR(CheckCounts(message, limits.program));
  ASSIGN_OR_RETURN(program.graph, DecodeGraphMessage(message.graph(), limits));
  RETURN_IF_ERROR(TakeList("device", message.devices(), program.devices,
                           [&](const auto& device) { return TakeDevice(device, limits); }));
  RETURN_IF_ERROR(TakeList("slot", message.slots(), program.slots, TakeSlot));
  RETURN_IF_ERROR(TakeList("place", message.places(), program.places,
                           [](const auto& place) { return Take("place", place); }));
  RETURN_IF_ERROR(TakeList("stream", message.streams(), program.streams,
                           [&](const auto& stream) { return TakeStream(stream, limits); }));
  RETURN_IF_ERROR(TakeList(
      "communicator", message.communicators(), program.communicators,
      [&](const auto& communicator) { return TakeCommunicator(communicator, limits.program); }));
  for (const int32_t node : message.outputs()) {
    RETURN_IF_ERROR(CheckNotNegative("outputs", node));
    program.outputs.push_back({NodeId{node}});
  }
  program.event_count = message.event_count();
  program.copies = message.copies();
  return program;
}

}  // namespace

std::string EncodeProgram(const Program& program) {
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<proto::Program>(&arena);
  EncodeGraphMessage(program.graph, *message.mutable_graph());
  for (const ProgramDevice& device : program.devices) {
    proto::ProgramDevice& inner = *message.add_devices();
    inner.set_name(CleanText(device.name, WireLimits{}.program.name_bytes));
    inner.mutable_memories()->Assign(device.memories.begin(), device.memories.end());
  }
  for (const Slot& slot : program.slots) {
    proto::Slot& inner = *message.add_slots();
    inner.set_kind(static_cast<uint32_t>(slot.kind));
    inner.set_id(slot.id);
    inner.set_device(slot.device);
    inner.set_bytes(slot.bytes);
  }
  for (const SlotPlace& place : program.places) Put(place, *message.add_places());
  for (const Stream& stream : program.streams) {
    proto::Stream& inner = *message.add_streams();
    inner.set_device(stream.device);
    for (const Command& command : stream.commands) {
      std::visit([&](const auto& value) { Put(value, *inner.add_commands()); }, command);
    }
  }
  for (const ProgramOutput& output : program.outputs) message.add_outputs(Index(output.node));
  for (const ProgramCommunicator& communicator : program.communicators) {
    Put(communicator, *message.add_communicators());
  }
  message.set_event_count(program.event_count);
  message.set_copies(program.copies);
  return message.SerializeAsString();
}

absl::StatusOr<Program> DecodeProgram(std::string_view bytes, const WireLimits& limits) {
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<proto::Program>(&arena);
  RETURN_IF_ERROR(ParseEmbedded("program", bytes, limits, message));
  return DecodeProgramMessage(message, limits);
}

}  // namespace weft
