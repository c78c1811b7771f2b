// What one process does in a step: an immutable list of commands per device over numbered slots
// (decision 1).
//
// A Program knows no address. It names a graph, the devices by position, and for each tensor a slot
// and an offset; an instance binds the slots to memory. Programs are compiled once per plan and
// launched once per step; the same executor runs them in the coordinator and in a worker.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/collectives/schedule.h"
#include "common/graph/graph.h"
#include "common/program/program_limits.h"

namespace weft {

enum class SlotKind : uint8_t {
  kWeight,     // id = weight id; bound before launch
  kCache,      // id = cache id; bound before launch
  kPageTable,  // id = table id; kept by the session, updated by the deltas of each step
  kInput,      // id = input id; allocated by the session, filled from each step's inputs
  kArena,      // id = device position; allocated by the session: intermediate results
  kCrossing,   // id = device position; as an arena, but allocated Program::copies times: results
               // that other devices touch while the next step already runs on this one
};

// A device, bound by position.
//
// `memories` are positions of devices whose memory this one computes in, without a copy. Results
// lie in that of memories[0]: the device itself, or a device whose buffer type it shares (an
// accelerator beside a processor); then it has no slots of its own. The others it can only reach
// directly.
struct ProgramDevice {
  std::string name;  // for people
  std::vector<int32_t> memories;
  friend bool operator==(const ProgramDevice&, const ProgramDevice&) = default;
};

// The kind of slot that a leaf of that kind lies in.
SlotKind SlotKindOf(LeafKind kind);

struct Slot {
  SlotKind kind = SlotKind::kArena;
  int32_t id = 0;
  int32_t device = 0;  // position in Program::devices
  int64_t bytes = 0;   // least size
  friend bool operator==(const Slot&, const Slot&) = default;
};

// Where a tensor lies; slot -1: it has no memory (views of such included).
struct SlotPlace {
  int32_t slot = -1;
  int64_t offset = 0;
  friend bool operator==(const SlotPlace&, const SlotPlace&) = default;
};

// Runs these nodes of the graph in order.
struct ComputeCommand {
  std::vector<NodeId> nodes;
  friend bool operator==(const ComputeCommand&, const ComputeCommand&) = default;
};
// Performs a `copy` node of the graph (equal type, contiguous source) by moving bytes into this
// stream's device from another local device's memory: how a tensor gets a replica. The places and
// the size are those of the node and its source.
struct CopyCommand {
  NodeId node = kNoNode;
  SlotPlace source;
  SlotPlace destination;
  int64_t bytes = 0;
  friend bool operator==(const CopyCommand&, const CopyCommand&) = default;
};
// Performs in part a `copy` node whose source is a weight leaf [k, m, n_expert, 1] in another
// device's memory: moves only the experts that `ids` names, an I32 tensor in any device's memory.
// Negative ids are padding; one of n_expert or more ends the step with INVALID_ARGUMENT. All users
// of `node` are mul_mat_id with these ids, a replica (copy) of them or a view of those. The places
// and the size are those of the nodes.
struct CopyExpertsCommand {
  NodeId node = kNoNode;
  NodeId ids = kNoNode;
  SlotPlace source;
  SlotPlace ids_place;
  SlotPlace destination;
  int64_t bytes = 0;  // of the whole weight
  friend bool operator==(const CopyExpertsCommand&, const CopyExpertsCommand&) = default;
};
// Shows a packed tensor that was computed to the host's observer (spec B.9), which may end the
// step. Waits for all of this stream where the host has an observer, else costs nothing.
struct ObserveCommand {
  NodeId node = kNoNode;
  int32_t tag = 0;  // for the observer
  friend bool operator==(const ObserveCommand&, const ObserveCommand&) = default;
};
// Marks a point of this stream for others.
struct RecordCommand {
  int32_t event = 0;
  friend bool operator==(const RecordCommand&, const RecordCommand&) = default;
};
// Later commands of this stream wait until the step has recorded that event.
struct WaitCommand {
  int32_t event = 0;
  friend bool operator==(const WaitCommand&, const WaitCommand&) = default;
};
// Hands a packed tensor, no weight, in memory of this stream's device to process `peer` of the
// group, as the message of the step named `edge`. Never waits for the receiver. The place and the
// size are those of the node.
struct SendCommand {
  NodeId node = kNoNode;
  SlotPlace source;
  int64_t bytes = 0;
  int32_t edge = 0;  // in each direction unique within a program
  int32_t peer = 0;
  friend bool operator==(const SendCommand&, const SendCommand&) = default;
};
// Performs a `receive` node of the graph: waits for the message `edge` of the step from process
// `peer` and puts it into memory of this stream's device. The place and the size are those of the
// node.
struct ReceiveCommand {
  NodeId node = kNoNode;
  SlotPlace destination;
  int64_t bytes = 0;
  int32_t edge = 0;
  int32_t peer = 0;
  friend bool operator==(const ReceiveCommand&, const ReceiveCommand&) = default;
};
// Performs an all_reduce or all_gather node of the graph together with the other ranks of its
// communicator, as the rank that this stream's device is: waits for all of them. The places and the
// size of the result are those of the nodes; an all_gather without a source has none.
struct CollectiveCommand {
  NodeId node = kNoNode;
  SlotPlace source;
  SlotPlace destination;
  int64_t bytes = 0;
  // The same on all ranks, as whoever made the plan found best.
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  // The stream goes on meanwhile, up to the FinishCommand of this node: until then it does not
  // touch the result, and does not write over the source.
  bool detached = false;
  friend bool operator==(const CollectiveCommand&, const CollectiveCommand&) = default;
};
// Waits for the detached collective of this stream that makes `node`.
struct FinishCommand {
  NodeId node = kNoNode;
  friend bool operator==(const FinishCommand&, const FinishCommand&) = default;
};
using Command =
    std::variant<ComputeCommand, CopyCommand, RecordCommand, WaitCommand, CopyExpertsCommand,
                 ObserveCommand, SendCommand, ReceiveCommand, CollectiveCommand, FinishCommand>;

// Where a rank is: on a device of this program, or in another process of the group.
struct CommunicatorRank {
  int32_t process = -1;  // -1: this one
  int32_t device = -1;   // position in Program::devices; -1: in another process
  int32_t host = 0;      // ranks with equal numbers are on one machine
  friend bool operator==(const CommunicatorRank&, const CommunicatorRank&) = default;
};

// Those who perform collectives together, in rank order.
struct ProgramCommunicator {
  std::vector<CommunicatorRank> ranks;
  friend bool operator==(const ProgramCommunicator&, const ProgramCommunicator&) = default;
};

// The commands of one device, run in order by its thread.
struct Stream {
  int32_t device = 0;
  std::vector<Command> commands;
  friend bool operator==(const Stream&, const Stream&) = default;
};

// A tensor that a step hands back: packed, in its slot.
struct ProgramOutput {
  NodeId node = kNoNode;
  friend bool operator==(const ProgramOutput&, const ProgramOutput&) = default;
};

struct Program {
  Graph graph;
  std::vector<ProgramDevice> devices;
  std::vector<Slot> slots;
  std::vector<SlotPlace> places;  // one per node of the graph
  std::vector<Stream> streams;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramCommunicator> communicators;  // as attributes of collectives name them
  int32_t event_count = 0;
  // How often crossing slots are there: 1, or kMaxStepsInFlight for a program whose steps overlap
  // (a step starts on a device as soon as the one before has finished there). Then a device touches
  // memory of another one only in crossing slots and weights.
  int32_t copies = 1;
  friend bool operator==(const Program&, const Program&) = default;
};

// Checks a program as if an enemy wrote it: the graph (VerifyGraph); every place inside its slot
// and aligned to 64 bytes for roots, leafs at the start of slots of their own kind and id, other
// roots in arenas or crossing slots, views and writing ops where their roots are; slots on devices
// with memory of their own, inputs numbered from 0 without gaps and of one size per id; one stream
// per device, which computes and writes in its device's memories only; weights, inputs and page
// tables never written; each executed node in exactly one command; no tensor read before it is
// written or after another was written over it; any two accesses to the same bytes, one of them a
// write, ordered by a stream or by events; results over sources only where the op may run in place;
// waits matched by exactly one record and no cycle between streams; copies equal to their node;
// `receive` nodes performed by their command alone; edges used once per direction; collectives
// performed by all ranks that are here, each once, alike and in the same order, without a circle of
// waits; detached ones finished by the stream that began them, at their memory until then; outputs
// placed; sizes bounded. Errors: INVALID_ARGUMENT naming stream, command and node.
absl::Status VerifyProgram(const Program& program, const ProgramLimits& limits = {});

}  // namespace weft
