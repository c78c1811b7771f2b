#include "common/program/session_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int64_t kEntryBytes = sizeof(int32_t);

// Bytes that an input takes in the input buffer; an empty one has an address too.
int64_t InputBytes(const Slot& slot, Device& device) {
  return AlignUp(std::max<int64_t>(slot.bytes, 1),
                 std::max(kTensorAlignment, device.buffer_type().alignment()));
}

void NoteReplaced(absl::string_view what, const Device& device, const Buffer* buffer, int64_t bytes,
                  std::vector<std::string>& replaced) {
  if (buffer == nullptr) return;
  replaced.push_back(absl::StrCat(what, " of ", device.name(), " grew from ", buffer->size(),
                                  " to ", bytes, " bytes"));
}

// `buffer` holds at least `bytes` afterwards; its content does not matter.
absl::Status Grow(const absl::AlphaNum& what, Device& device, int64_t bytes,
                  std::unique_ptr<Buffer>& buffer, std::vector<std::string>& replaced) {
  if (buffer != nullptr && buffer->size() >= bytes) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<Buffer> larger,
                   device.buffer_type().Allocate(bytes, BufferUsage::kCompute));
  NoteReplaced(what.Piece(), device, buffer.get(), bytes, replaced);
  buffer = std::move(larger);
  return absl::OkStatus();
}

}  // namespace

SessionMemory::SessionMemory(absl::Span<Device* const> devices, int64_t table_bytes_limit)
    : table_bytes_limit_(table_bytes_limit) {
  for (Device* device : devices) {
    devices_.emplace_back();
    devices_.back().device = device;
  }
}

std::vector<SessionMemory::Need> SessionMemory::NeedOf(const Program& program) const {
  std::vector<Need> needs(devices_.size());
  for (const Slot& slot : program.slots) {
    Need& need = needs[slot.device];
    if (slot.kind == SlotKind::kInput) {
      // The verifier bounds the sum.
      need.input_bytes += InputBytes(slot, *devices_[slot.device].device);
    } else if (slot.kind == SlotKind::kArena) {
      need.arena_bytes.push_back(slot.bytes);
    } else if (slot.kind == SlotKind::kCrossing) {
      need.crossing_bytes.push_back(slot.bytes);
    } else if (slot.kind == SlotKind::kPageTable) {
      need.tables.push_back(&slot);
    }
  }
  return needs;
}

absl::Status SessionMemory::Reserve(const Program& program, std::vector<std::string>& replaced) {
  const std::vector<Need> needs = NeedOf(program);
  for (size_t d = 0; d < needs.size(); ++d) {
    RETURN_IF_ERROR(ReserveDevice(needs[d], program.copies, devices_[d], replaced));
  }
  return absl::OkStatus();
}

void SessionMemory::Clear() {
  for (Shared& shared : devices_) {
    shared.inputs.reset();
    shared.arenas.clear();
    shared.crossings.clear();
  }
}

absl::Status SessionMemory::ReserveDevice(const Need& need, int32_t copies, Shared& shared,
                                          std::vector<std::string>& replaced) {
  Device& device = *shared.device;
  if (need.input_bytes > 0) {
    RETURN_IF_ERROR(Grow("input memory", device, need.input_bytes, shared.inputs, replaced));
  }
  if (shared.arenas.size() < need.arena_bytes.size()) {
    shared.arenas.resize(need.arena_bytes.size());
  }
  for (size_t k = 0; k < need.arena_bytes.size(); ++k) {
    RETURN_IF_ERROR(
        Grow(absl::StrCat("arena ", k), device, need.arena_bytes[k], shared.arenas[k], replaced));
  }
  if (shared.crossings.size() < need.crossing_bytes.size()) {
    shared.crossings.resize(need.crossing_bytes.size());
  }
  for (size_t k = 0; k < need.crossing_bytes.size(); ++k) {
    for (int32_t copy = 0; copy < copies; ++copy) {
      RETURN_IF_ERROR(Grow(absl::StrCat("copy ", copy, " of crossing slot ", k), device,
                           need.crossing_bytes[k], shared.crossings[k][copy], replaced));
    }
  }
  for (const Slot* slot : need.tables) RETURN_IF_ERROR(ReserveTable(*slot, shared, replaced));
  return absl::OkStatus();
}

absl::Status SessionMemory::ReserveTable(const Slot& slot, Shared& shared,
                                         std::vector<std::string>& replaced) {
  std::vector<int32_t>& content = tables_[slot.id];
  const int64_t entries =
      std::max(static_cast<int64_t>(content.size()), CeilDivide(slot.bytes, kEntryBytes));
  const int64_t bytes = entries * kEntryBytes;
  std::unique_ptr<Buffer>& table = shared.tables[slot.id];
  if (table != nullptr && table->size() >= bytes) return absl::OkStatus();
  const int64_t more = bytes - (table == nullptr ? 0 : table->size());
  if (more > table_bytes_limit_ - table_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("page table ", slot.id, " of ", bytes,
                     " bytes: the tables of a session take at most ", table_bytes_limit_));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Buffer> larger,
                   shared.device->buffer_type().Allocate(bytes, BufferUsage::kAny));
  content.resize(static_cast<size_t>(entries));
  RETURN_IF_ERROR(larger->Set(0, content.data(), bytes));
  NoteReplaced(absl::StrCat("page table ", slot.id), *shared.device, table.get(), bytes, replaced);
  table = std::move(larger);
  table_bytes_ += more;
  return absl::OkStatus();
}

std::vector<SlotMemory> SessionMemory::Resolve(const Program& program, int32_t copy) const {
  std::vector<SlotMemory> memory(program.slots.size());
  std::vector<int64_t> input_end(devices_.size());
  std::vector<size_t> next_arena(devices_.size());
  std::vector<size_t> next_crossing(devices_.size());
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    const Shared& shared = devices_[slot.device];
    if (slot.kind == SlotKind::kInput) {
      memory[i] = {shared.inputs.get(), input_end[slot.device]};
      input_end[slot.device] += InputBytes(slot, *shared.device);
    } else if (slot.kind == SlotKind::kArena) {
      memory[i] = {shared.arenas[next_arena[slot.device]++].get(), 0};
    } else if (slot.kind == SlotKind::kCrossing) {
      memory[i] = {shared.crossings[next_crossing[slot.device]++][copy].get(), 0};
    } else if (slot.kind == SlotKind::kPageTable) {
      memory[i] = {Table(slot.id, slot.device), 0};
    }
  }
  return memory;
}

absl::Status SessionMemory::CheckUpdate(const TableUpdate& update) const {
  const auto found = tables_.find(update.table);
  if (found == tables_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no page table ", update.table));
  }
  const auto entries = static_cast<int64_t>(found->second.size());
  if (update.entry < 0 || update.entry >= entries || update.page < 0) {
    return absl::InvalidArgumentError(absl::StrCat("page table ", update.table, " of ", entries,
                                                   " entries: entry ", update.entry, " = page ",
                                                   update.page));
  }
  return absl::OkStatus();
}

void SessionMemory::NoteUpdate(const TableUpdate& update) {
  tables_[update.table][static_cast<size_t>(update.entry)] = update.page;
}

Buffer* SessionMemory::Table(int32_t table, int32_t device) const {
  const auto& tables = devices_[device].tables;
  const auto found = tables.find(table);
  return found == tables.end() ? nullptr : found->second.get();
}

}  // namespace weft
