// The memory that all instances of a session share: per device one input buffer, the pieces of the
// arena, the crossing slots and the page tables. It grows while instances
// live.
//
// Sharing is sound because the steps of a session run one after another on each device. What other
// devices touch while the next step already runs on this one lies in crossing slots, and those of
// steps in flight differ by their copy.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/program/program.h"
#include "common/program/program_host.h"

namespace weft {

// Where a slot begins.
struct SlotMemory {
  Buffer* buffer = nullptr;
  int64_t offset = 0;
  friend bool operator==(const SlotMemory&, const SlotMemory&) = default;
};

// Not thread-safe; Reserve and the destructor need all devices idle.
class SessionMemory {
 public:
  SessionMemory(absl::Span<Device* const> devices, int64_t table_bytes_limit);

  // Makes room for the inputs, arenas, crossing slots and page tables of `program`. Adds to
  // `replaced` a sentence for each buffer that was replaced, also on failure: instances that know
  // it must resolve their slots again. Errors: RESOURCE_EXHAUSTED.
  absl::Status Reserve(const Program& program, std::vector<std::string>& replaced);

  // Frees all but the page tables; for when no instance is left.
  void Clear();

  // The memory of each input, arena, crossing and page table slot for copy `copy`, after Reserve;
  // of the others null.
  std::vector<SlotMemory> Resolve(const Program& program, int32_t copy) const;

  // Errors: INVALID_ARGUMENT for an unknown table, an entry outside it or a negative page.
  absl::Status CheckUpdate(const TableUpdate& update) const;
  // Remembers a checked update, for tables that are made or grown later.
  void NoteUpdate(const TableUpdate& update);
  // The table on that device, or null.
  Buffer* Table(int32_t table, int32_t device) const;
  bool HasTables(int32_t device) const { return !devices_[device].tables.empty(); }

 private:
  struct Shared {
    Device* device = nullptr;
    std::unique_ptr<Buffer> inputs;
    std::vector<std::unique_ptr<Buffer>> arenas;
    std::vector<std::array<std::unique_ptr<Buffer>, kMaxStepsInFlight>> crossings;  // [slot][copy]
    absl::flat_hash_map<int32_t, std::unique_ptr<Buffer>> tables;
  };
  // What a program needs of one device.
  struct Need {
    int64_t input_bytes = 0;
    std::vector<int64_t> arena_bytes;
    std::vector<int64_t> crossing_bytes;
    std::vector<const Slot*> tables;
  };
  std::vector<Need> NeedOf(const Program& program) const;
  absl::Status ReserveDevice(const Need& need, int32_t copies, Shared& shared,
                             std::vector<std::string>& replaced);
  absl::Status ReserveTable(const Slot& slot, Shared& shared, std::vector<std::string>& replaced);

  std::vector<Shared> devices_;
  const int64_t table_bytes_limit_;
  int64_t table_bytes_ = 0;
  // What each table holds once every launched step has run. Entries start as page 0, the scratch
  // page.
  absl::flat_hash_map<int32_t, std::vector<int32_t>> tables_;
};

}  // namespace weft
