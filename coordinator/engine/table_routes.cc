#include "coordinator/engine/table_routes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"

namespace weft {
namespace {

bool HasCache(absl::Span<const Slot> slots, int32_t cache) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    return slot.kind == SlotKind::kCache && slot.id == cache;
  });
}

bool Same(const PageCopy& a, const PageCopy& b) {
  return a.cache == b.cache && a.from == b.from && a.to == b.to && a.page_bytes == b.page_bytes;
}

}  // namespace

void TableRoutes::AddSlots(int32_t process, absl::Span<const Slot> slots) {
  Process& mine = processes_[process];
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::kCache) mine.caches.insert(slot.id);
    if (slot.kind != SlotKind::kPageTable) continue;
    const auto entries = static_cast<int32_t>(CeilDivide(slot.bytes, int64_t{sizeof(int32_t)}));
    std::vector<int32_t>& content = tables_[slot.id];
    content.resize(std::max(content.size(), static_cast<size_t>(entries)));
    // Entries start as page 0.
    int32_t& known = mine.table_entries[slot.id];
    for (; known < entries; ++known) {
      if (content[known] != 0) mine.dirty.emplace(slot.id, known);
    }
  }
}

absl::Status TableRoutes::Check(const StepInput& input) const {
  for (const TableUpdate& update : input.table_updates) {
    const auto table = tables_.find(update.table);
    if (table == tables_.end() || update.entry < 0 || update.page < 0 ||
        update.entry >= static_cast<int64_t>(table->second.size())) {
      return absl::InvalidArgumentError(absl::StrCat("no entry ", update.entry, " of page table ",
                                                     update.table, " for page ", update.page));
    }
  }
  for (const PageCopy& copy : input.page_copies) {
    if (std::none_of(processes_.begin(), processes_.end(),
                     [&](const Process& process) { return process.caches.contains(copy.cache); })) {
      return absl::InvalidArgumentError(absl::StrCat("page copy: no cache ", copy.cache));
    }
  }
  return absl::OkStatus();
}

void TableRoutes::Note(const StepInput& input) {
  for (const TableUpdate& update : input.table_updates) {
    tables_[update.table][update.entry] = update.page;
  }
  for (Process& process : processes_) {
    for (const TableUpdate& update : input.table_updates) {
      const auto known = process.table_entries.find(update.table);
      if (known == process.table_entries.end() || update.entry >= known->second) continue;
      process.dirty.emplace(update.table, update.entry);
    }
    for (const PageCopy& copy : input.page_copies) {
      if (process.caches.contains(copy.cache)) process.copies.push_back(copy);
    }
  }
}

void TableRoutes::Gather(int32_t process, absl::Span<const Slot> slots, StepInput& input) const {
  const Process& mine = processes_[process];
  input.table_updates.clear();
  for (const auto& [table, entry] : mine.dirty) {
    input.table_updates.push_back({table, entry, tables_.at(table)[entry]});
  }
  input.page_copies.clear();
  for (const PageCopy& copy : mine.copies) {
    if (HasCache(slots, copy.cache)) input.page_copies.push_back(copy);
  }
}

void TableRoutes::Done(int32_t process, const StepInput& input) {
  Process& mine = processes_[process];
  for (const TableUpdate& update : input.table_updates) {
    mine.dirty.erase({update.table, update.entry});
  }
  size_t next = 0;
  std::erase_if(mine.copies, [&](const PageCopy& copy) {
    const bool sent = next < input.page_copies.size() && Same(copy, input.page_copies[next]);
    next += sent ? 1 : 0;
    return sent;
  });
}

}  // namespace weft
