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
#include "common/graph/graph.h"
#include "common/program/program_limits.h"

namespace weft {

enum class SlotKind : uint8_t {
  kWeight,     // id = weight id; bound before launch
  kCache,      // id = cache id; bound before launch
  kPageTable,  // id = table id; kept by the session, updated by the deltas of each step
  kInput,      // id = input id; allocated by the instance, filled from each step's inputs
  kArena,      // id = device index; allocated by the instance: intermediate results
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
using Command = std::variant<ComputeCommand, CopyCommand, RecordCommand, WaitCommand>;

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
  std::vector<std::string> devices;  // names, for people; bound by position
  std::vector<Slot> slots;
  std::vector<SlotPlace> places;  // one per node of the graph
  std::vector<Stream> streams;
  std::vector<ProgramOutput> outputs;
  int32_t event_count = 0;
  friend bool operator==(const Program&, const Program&) = default;
};

// Checks a program as if an enemy wrote it: the graph (VerifyGraph), every place inside its slot
// and aligned to 64 bytes for roots, leafs at the start of slots of their own kind and id, other
// roots in arenas, views and writing ops where their roots are, weights and inputs never written,
// one stream per device and only that stream writing its slots, each executed node in exactly one
// compute or copy command, no tensor read before it is written (in stream order and across streams
// by events) or after another was written over it, results over sources only where the op may run
// in place, waits matched by exactly one record and no cycle between streams, copies equal to their
// node, outputs placed, sizes bounded. Inputs are numbered from 0 without gaps. Errors:
// INVALID_ARGUMENT naming stream, command and node.
absl::Status VerifyProgram(const Program& program, const ProgramLimits& limits = {});

}  // namespace weft
