// Sizes and places of a program, checked with the arithmetic of someone who expects the worst.
#include <optional>
#include <set>
#include <utility>

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
  for (const std::string& name : program.devices) {
    RETURN_IF_ERROR(CheckCount("bytes in a device's name", name.size(), limits.name_bytes));
  }
  for (const Node& node : program.graph.nodes()) {
    RETURN_IF_ERROR(CheckCount("bytes in a node's name", node.name.size(), limits.name_bytes));
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

// Two slots of one kind and id would bind one tensor twice; arenas may come in several pieces, and
// a page table lies on each device that reads it.
absl::Status CheckSlot(const Program& program, const Slot& slot, const ProgramLimits& limits,
                       std::set<std::pair<SlotKind, int32_t>>& seen,
                       std::set<std::pair<int32_t, int32_t>>& tables) {
  if (slot.kind > SlotKind::kArena) return absl::InvalidArgumentError("unknown kind");
  if (slot.device < 0 || slot.device >= static_cast<int64_t>(program.devices.size())) {
    return absl::InvalidArgumentError(absl::StrCat("no device ", slot.device));
  }
  if (slot.id < 0) return absl::InvalidArgumentError(absl::StrCat("id ", slot.id));
  const int64_t most = slot.kind == SlotKind::kPageTable ? limits.table_bytes : limits.slot_bytes;
  if (slot.bytes < 0 || slot.bytes > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(slot.bytes, " bytes, at most ", most, " are allowed"));
  }
  bool fresh = true;
  if (slot.kind == SlotKind::kArena) {
    if (slot.id != slot.device) {
      return absl::InvalidArgumentError(
          absl::StrCat("arena ", slot.id, " on device ", slot.device));
    }
  } else if (slot.kind == SlotKind::kPageTable) {
    fresh = tables.emplace(slot.id, slot.device).second;
  } else {
    fresh = seen.emplace(slot.kind, slot.id).second;
  }
  if (!fresh) return absl::InvalidArgumentError(absl::StrCat("id ", slot.id, " is used twice"));
  return absl::OkStatus();
}

absl::Status CheckSlots(const Program& program, const ProgramLimits& limits) {
  std::set<std::pair<SlotKind, int32_t>> seen;
  std::set<std::pair<int32_t, int32_t>> tables;
  const std::vector<int32_t> stream_of = StreamOfDevice(program);
  int64_t input_count = 0;
  int64_t highest_input = -1;
  int64_t input_bytes = 0;
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    const absl::Status status = CheckSlot(program, slot, limits, seen, tables);
    if (!status.ok()) return Bad(absl::StrCat("slot ", i), status.message());
    if (slot.kind == SlotKind::kWeight) continue;
    if (stream_of[slot.device] < 0) {
      return Bad(absl::StrCat("slot ", i), absl::StrCat("device ", slot.device, " has no stream"));
    }
    if (slot.kind != SlotKind::kInput) continue;
    ++input_count;
    highest_input = std::max<int64_t>(highest_input, slot.id);
    const std::optional<int64_t> sum = CheckedAdd(input_bytes, slot.bytes);
    if (!sum || *sum > limits.step_input_bytes) return Bad("program", "its inputs are too large");
    input_bytes = *sum;
  }
  if (highest_input + 1 != input_count) return Bad("program", "input ids have gaps");
  return absl::OkStatus();
}

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
  if (slot.kind != SlotKind::kArena) {
    return absl::InvalidArgumentError("a result lies outside the arenas");
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const Program& program, const ProgramLimits& limits) {
  int64_t total = 0;
  const std::vector<int32_t> stream_of = StreamOfDevice(program);
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const std::string where = absl::StrCat("output ", i);
    const NodeId id = program.outputs[i].node;
    if (Index(id) < 0 || Index(id) >= program.graph.size()) {
      return Bad(where, absl::StrCat("no node ", Index(id)));
    }
    const std::string node = absl::StrCat(where, ", ", NodeText(program.graph, id));
    const SlotPlace& place = program.places[Index(id)];
    if (place.slot < 0) return Bad(node, "has no memory");
    if (stream_of[program.slots[place.slot].device] < 0) return Bad(node, "no stream to fetch it");
    const TensorLayout& layout = program.graph.layout(id);
    if (!IsContiguous(layout)) return Bad(node, "is not packed");
    const std::optional<int64_t> sum = CheckedAdd(total, *ByteExtent(layout));
    if (!sum || *sum > limits.step_output_bytes) return Bad(node, "outputs are too large");
    total = *sum;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int32_t> StreamOfDevice(const Program& program) {
  std::vector<int32_t> stream_of(program.devices.size(), -1);
  for (size_t i = 0; i < program.streams.size(); ++i) {
    stream_of[program.streams[i].device] = static_cast<int32_t>(i);
  }
  return stream_of;
}

absl::Status CheckProgramSizes(const Program& program, const ProgramLimits& limits) {
  RETURN_IF_ERROR(CheckCounts(program, limits));
  RETURN_IF_ERROR(CheckStreams(program));
  return CheckSlots(program, limits);
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
  return CheckProgramOrder(program);
}

}  // namespace weft
