// Sizes and places of a program, checked with the arithmetic of someone who expects the worst.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

absl::Status Bad(const absl::AlphaNum& where, const absl::AlphaNum& why) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
}

absl::Status CheckCount(absl::string_view what, size_t count, int64_t limit) {
  if (static_cast<int64_t>(count) <= limit) return absl::OkStatus();
  return Bad("program", absl::StrCat(count, " ", what, ", at most ", limit, " are allowed"));
}

absl::Status CheckCounts(const Program& program, const ProgramLimits& limits) {
  RETURN_IF_ERROR(CheckCount("nodes", program.graph.nodes().size(), limits.nodes));
  RETURN_IF_ERROR(CheckCount("devices", program.devices.size(), limits.devices));
  RETURN_IF_ERROR(CheckCount("slots", program.slots.size(), limits.slots));
  RETURN_IF_ERROR(CheckCount("streams", program.streams.size(), limits.devices));
  RETURN_IF_ERROR(CheckCount("outputs", program.outputs.size(), limits.outputs));
  if (program.event_count < 0 || program.event_count > limits.events) {
    return Bad("program", absl::StrCat(program.event_count, " events, at most ", limits.events,
                                       " are allowed"));
  }
  if (program.places.size() != program.graph.nodes().size()) {
    return Bad("program",
               absl::StrCat(program.places.size(), " places for ", program.graph.size(), " nodes"));
  }
  size_t commands = 0;
  for (const Stream& stream : program.streams) commands += stream.commands.size();
  RETURN_IF_ERROR(CheckCount("commands", commands, limits.commands));
  for (const ProgramDevice& device : program.devices) {
    RETURN_IF_ERROR(CheckCount("bytes in a device's name", device.name.size(), limits.name_bytes));
  }
  for (const Node& node : program.graph.nodes()) {
    RETURN_IF_ERROR(CheckCount("bytes in a node's name", node.name.size(), limits.name_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckMemories(const Program& program, size_t device) {
  const std::vector<int32_t>& memories = program.devices[device].memories;
  if (memories.empty()) return absl::InvalidArgumentError("no memories");
  std::vector<bool> seen(program.devices.size());
  for (const int32_t memory : memories) {
    if (memory < 0 || memory >= static_cast<int64_t>(seen.size())) {
      return absl::InvalidArgumentError(absl::StrCat("no device ", memory));
    }
    if (seen[memory]) return absl::InvalidArgumentError(absl::StrCat("memory ", memory, " twice"));
    seen[memory] = true;
    const std::vector<int32_t>& own = program.devices[memory].memories;
    if (own.empty() || own[0] != memory) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", memory, " has no memory of its own"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const Program& program) {
  if (program.copies != 1 && program.copies != kMaxStepsInFlight) {
    return Bad("program", absl::StrCat(program.copies, " copies, want 1 or ", kMaxStepsInFlight));
  }
  for (size_t d = 0; d < program.devices.size(); ++d) {
    const absl::Status status = CheckMemories(program, d);
    if (!status.ok()) return Bad(absl::StrCat("device ", d), status.message());
    if (program.copies > 1 && program.devices[d].memories[0] != static_cast<int32_t>(d)) {
      return Bad(absl::StrCat("device ", d), "steps cannot overlap where memory is shared");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStreams(const Program& program) {
  std::vector<bool> used(program.devices.size());
  for (size_t i = 0; i < program.streams.size(); ++i) {
    const int32_t device = program.streams[i].device;
    if (device < 0 || device >= static_cast<int64_t>(used.size())) {
      return Bad(absl::StrCat("stream ", i), absl::StrCat("no device ", device));
    }
    if (used[device]) {
      return Bad(absl::StrCat("stream ", i), absl::StrCat("device ", device, " has another one"));
    }
    used[device] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const Program& program, const ProgramLimits& limits,
                        const ProgramCommunicator& communicator) {
  if (communicator.ranks.empty() || communicator.ranks.size() > size_t{kMaxRanks}) {
    return absl::InvalidArgumentError(
        absl::StrCat(communicator.ranks.size(), " ranks, want 1 to ", kMaxRanks));
  }
  std::vector<bool> used(program.devices.size());
  for (size_t r = 0; r < communicator.ranks.size(); ++r) {
    const CommunicatorRank& rank = communicator.ranks[r];
    const bool here = rank.process == -1;
    const auto device_limit = static_cast<int64_t>(program.devices.size());
    if (rank.process < -1 || rank.process >= limits.peers || rank.host < 0 ||
        (here ? rank.device < 0 || rank.device >= device_limit : rank.device != -1)) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", r, " on device ", rank.device,
                                                     " of process ", rank.process, ", host ",
                                                     rank.host));
    }
    if (!here) continue;
    if (used[rank.device]) {
      return absl::InvalidArgumentError(absl::StrCat("device ", rank.device, " is two ranks"));
    }
    used[rank.device] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckCommunicators(const Program& program, const ProgramLimits& limits) {
  RETURN_IF_ERROR(CheckCount("communicators", program.communicators.size(), limits.communicators));
  for (size_t c = 0; c < program.communicators.size(); ++c) {
    const absl::Status status = CheckRanks(program, limits, program.communicators[c]);
    if (!status.ok()) return Bad(absl::StrCat("communicator ", c), status.message());
  }
  return absl::OkStatus();
}

bool AllocatedByDevice(SlotKind kind) {
  return kind == SlotKind::kArena || kind == SlotKind::kCrossing;
}

class SlotChecker {
 public:
  SlotChecker(const Program& program, const ProgramLimits& limits)
      : program_(program), limits_(limits), stream_of_(StreamOfDevice(program)) {}

  absl::Status Check() {
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const absl::Status status = CheckSlot(program_.slots[i]);
      if (!status.ok()) return Bad(absl::StrCat("slot ", i), status.message());
    }
    if (highest_input_ + 1 != static_cast<int64_t>(input_bytes_of_.size())) {
      return Bad("program", "input ids have gaps");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSlot(const Slot& slot) {
    if (slot.kind > SlotKind::kCrossing) return absl::InvalidArgumentError("unknown kind");
    if (slot.device < 0 || slot.device >= static_cast<int64_t>(program_.devices.size())) {
      return absl::InvalidArgumentError(absl::StrCat("no device ", slot.device));
    }
    if (program_.devices[slot.device].memories[0] != slot.device) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", slot.device, " has no memory of its own"));
    }
    if (slot.id < 0) return absl::InvalidArgumentError(absl::StrCat("id ", slot.id));
    const int64_t most =
        slot.kind == SlotKind::kPageTable ? limits_.table_bytes : limits_.slot_bytes;
    if (slot.bytes < 0 || slot.bytes > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(slot.bytes, " bytes, at most ", most, " are allowed"));
    }
    RETURN_IF_ERROR(CheckIdentity(slot));
    // These are filled, or have their pages copied, by the stream of their device.
    const bool filled = slot.kind == SlotKind::kInput || slot.kind == SlotKind::kPageTable ||
                        slot.kind == SlotKind::kCache;
    if (filled && stream_of_[slot.device] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("device ", slot.device, " has no stream"));
    }
    return slot.kind == SlotKind::kInput ? CheckInput(slot) : absl::OkStatus();
  }

  // Two slots of one kind and id would bind one tensor twice. What is allocated for a device may
  // come in several pieces; inputs and page tables lie on each device that reads them.
  absl::Status CheckIdentity(const Slot& slot) {
    if (AllocatedByDevice(slot.kind)) {
      if (slot.id == slot.device) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat(slot.kind == SlotKind::kArena ? "arena " : "crossing slot ", slot.id,
                       " on device ", slot.device));
    }
    const bool bound = slot.kind == SlotKind::kWeight || slot.kind == SlotKind::kCache;
    if (seen_.emplace(slot.kind, slot.id, bound ? 0 : slot.device).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("id ", slot.id, " is used twice"));
  }

  absl::Status CheckInput(const Slot& slot) {
    highest_input_ = std::max<int64_t>(highest_input_, slot.id);
    const auto [known, fresh] = input_bytes_of_.emplace(slot.id, slot.bytes);
    if (!fresh && known->second != slot.bytes) {
      return absl::InvalidArgumentError(absl::StrCat("input ", slot.id, " of ", slot.bytes,
                                                     " bytes, elsewhere of ", known->second));
    }
    const std::optional<int64_t> sum = CheckedAdd(input_bytes_, fresh ? slot.bytes : 0);
    if (!sum || *sum > limits_.step_input_bytes) {
      return absl::InvalidArgumentError("the inputs are too large");
    }
    input_bytes_ = *sum;
    return absl::OkStatus();
  }

  const Program& program_;
  const ProgramLimits& limits_;
  const std::vector<int32_t> stream_of_;
  std::set<std::tuple<SlotKind, int32_t, int32_t>> seen_;  // kind, id, device where it counts
  std::map<int32_t, int64_t> input_bytes_of_;
  int64_t highest_input_ = -1;
  int64_t input_bytes_ = 0;
};

absl::Status CheckLeafPlace(const Slot& slot, const SlotPlace& place, const LeafAttributes& leaf,
                            int64_t bytes) {
  if (slot.kind != SlotKindOf(leaf.kind) || slot.id != leaf.id || place.offset != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a leaf lies at the start of the slot of its kind and id ", leaf.id));
  }
  if (leaf.kind == LeafKind::kInput && slot.bytes != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an input of ", bytes, " bytes in a slot of ", slot.bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckPlace(const Program& program, NodeId id) {
  const Graph& graph = program.graph;
  const SlotPlace& place = program.places[Index(id)];
  const NodeId root = graph.Root(id);
  if (place.slot == -1) {
    if (place.offset != 0) return absl::InvalidArgumentError("an offset without a slot");
    if (graph.Executes(id)) return absl::InvalidArgumentError("has no memory");
    if (program.places[Index(root)].slot != -1) {
      return absl::InvalidArgumentError("is not where its root is");
    }
    return absl::OkStatus();
  }
  if (place.slot < 0 || place.slot >= static_cast<int64_t>(program.slots.size())) {
    return absl::InvalidArgumentError(absl::StrCat("no slot ", place.slot));
  }
  const Slot& slot = program.slots[place.slot];
  const std::optional<int64_t> extent = ByteExtent(graph.layout(id));
  const std::optional<int64_t> end = extent ? CheckedAdd(place.offset, *extent) : std::nullopt;
  if (place.offset < 0 || !end || *end > slot.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("at offset ", place.offset, " leaves slot ",
                                                   place.slot, " of ", slot.bytes, " bytes"));
  }
  if (root != id) {
    const SlotPlace& of_root = program.places[Index(root)];
    const std::optional<int64_t> offset = CheckedAdd(of_root.offset, graph.node(id).view_offset);
    if (of_root.slot != place.slot || !offset || *offset != place.offset) {
      return absl::InvalidArgumentError("is not where its root is");
    }
    return absl::OkStatus();
  }
  if (place.offset % kTensorAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat("misaligned offset ", place.offset));
  }
  if (const LeafAttributes* leaf = graph.leaf(id); leaf != nullptr) {
    return CheckLeafPlace(slot, place, *leaf, *extent);
  }
  if (!AllocatedByDevice(slot.kind)) {
    return absl::InvalidArgumentError("a result lies outside the arenas");
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const Program& program, const ProgramLimits& limits) {
  int64_t total = 0;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const std::string where = absl::StrCat("output ", i);
    const NodeId id = program.outputs[i].node;
    if (Index(id) < 0 || Index(id) >= program.graph.size()) {
      return Bad(where, absl::StrCat("no node ", Index(id)));
    }
    const std::string node = absl::StrCat(where, ", ", NodeText(program.graph, id));
    const SlotPlace& place = program.places[Index(id)];
    if (place.slot < 0) return Bad(node, "has no memory");
    const TensorLayout& layout = program.graph.layout(id);
    if (!IsContiguous(layout)) return Bad(node, "is not packed");
    const std::optional<int64_t> sum = CheckedAdd(total, *ByteExtent(layout));
    if (!sum || *sum > limits.step_output_bytes) return Bad(node, "outputs are too large");
    total = *sum;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProgramSizes(const Program& program, const ProgramLimits& limits) {
  RETURN_IF_ERROR(CheckCounts(program, limits));
  RETURN_IF_ERROR(CheckDevices(program));
  RETURN_IF_ERROR(CheckStreams(program));
  RETURN_IF_ERROR(CheckCommunicators(program, limits));
  return SlotChecker(program, limits).Check();
}

absl::Status CheckProgramPlaces(const Program& program, const ProgramLimits& limits) {
  for (int32_t i = 0; i < program.graph.size(); ++i) {
    const absl::Status status = CheckPlace(program, NodeId{i});
    if (!status.ok()) return Bad(NodeText(program.graph, NodeId{i}), status.message());
  }
  return CheckOutputs(program, limits);
}

absl::Status VerifyProgram(const Program& program, const ProgramLimits& limits) {
  RETURN_IF_ERROR(CheckProgramSizes(program, limits));
  RETURN_IF_ERROR(VerifyGraph(program.graph));
  RETURN_IF_ERROR(CheckProgramPlaces(program, limits));
  RETURN_IF_ERROR(CheckProgramCommands(program, limits));
  RETURN_IF_ERROR(CheckProgramCollectives(program, limits));
  return CheckProgramOrder(program);
}

}  // namespace weft
