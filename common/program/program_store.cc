#include "common/program/program_store.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace weft {

uint64_t ProgramHash(const Program& program) {
  // The text of the graph leaves out a few attributes; equality does not.
  uint64_t hash = absl::HashOf(GraphText(program.graph), program.event_count, program.copies);
  for (const ProgramDevice& device : program.devices) {
    hash = absl::HashOf(hash, device.name, device.memories);
  }
  for (const Slot& slot : program.slots) {
    hash = absl::HashOf(hash, static_cast<int>(slot.kind), slot.id, slot.device, slot.bytes);
  }
  for (const SlotPlace& place : program.places) {
    hash = absl::HashOf(hash, place.slot, place.offset);
  }
  for (const Stream& stream : program.streams) {
    hash = absl::HashOf(hash, stream.device, stream.commands.size());
    for (const Command& command : stream.commands) {
      hash = absl::HashOf(hash, command.index());
      if (const auto* compute = std::get_if<ComputeCommand>(&command)) {
        hash = absl::HashOf(hash, compute->nodes.size());
      } else if (const auto* send = std::get_if<SendCommand>(&command)) {
        hash = absl::HashOf(hash, send->edge, send->peer);
      } else if (const auto* receive = std::get_if<ReceiveCommand>(&command)) {
        hash = absl::HashOf(hash, receive->edge, receive->peer);
      } else if (const auto* collective = std::get_if<CollectiveCommand>(&command)) {
        hash = absl::HashOf(hash, static_cast<int>(collective->algorithm), collective->detached);
      }
    }
  }
  for (const ProgramCommunicator& communicator : program.communicators) {
    hash = absl::HashOf(hash, communicator.ranks.size());
    for (const CommunicatorRank& rank : communicator.ranks) {
      hash = absl::HashOf(hash, rank.process, rank.device, rank.host);
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    hash = absl::HashOf(hash, Index(output.node));
  }
  return hash;
}

ProgramStore::Entry* ProgramStore::FindEntry(ProgramId id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.id == id; });
  return found == entries_.end() ? nullptr : &*found;
}

absl::StatusOr<ProgramId> ProgramStore::Add(Program program) {
  const uint64_t hash = ProgramHash(program);
  ++now_;
  for (Entry& entry : entries_) {
    if (entry.hash == hash && *entry.program == program) {
      entry.last_used = now_;
      return entry.id;
    }
  }
  if (size() >= capacity_) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->instances > 0) continue;
      if (oldest == entries_.end() || it->last_used < oldest->last_used) oldest = it;
    }
    if (oldest == entries_.end()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(size(), " programs are in use; release an instance first"));
    }
    entries_.erase(oldest);
  }
  const ProgramId id{next_id_++};
  entries_.push_back({id, hash, now_, 0, std::make_unique<const Program>(std::move(program))});
  return id;
}

const Program* ProgramStore::Find(ProgramId id) const {
  for (const Entry& entry : entries_) {
    if (entry.id == id) return entry.program.get();
  }
  return nullptr;
}

void ProgramStore::Use(ProgramId id) {
  if (Entry* entry = FindEntry(id); entry != nullptr) {
    ++entry->instances;
    entry->last_used = ++now_;
  }
}

void ProgramStore::Unuse(ProgramId id) {
  if (Entry* entry = FindEntry(id); entry != nullptr) --entry->instances;
}

}  // namespace weft
