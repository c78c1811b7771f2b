// The verified programs of a session, by content: equal programs share an id. Bounded; programs
// without an instance make room, the one that was installed or used longest ago first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/program.h"
#include "common/program/program_host.h"

namespace weft {

// Not thread-safe.
class ProgramStore {
 public:
  explicit ProgramStore(int64_t capacity) : capacity_(capacity) {}

  // Stores a verified program, or finds its equal. Errors: RESOURCE_EXHAUSTED if every stored
  // program is in use.
  absl::StatusOr<ProgramId> Add(Program program);
  // Null if unknown or dropped. Valid while it is in use.
  const Program* Find(ProgramId id) const;
  // Counts instances; a program with any is not dropped.
  void Use(ProgramId id);
  void Unuse(ProgramId id);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  struct Entry {
    ProgramId id;
    uint64_t hash = 0;
    int64_t last_used = 0;
    int64_t instances = 0;
    std::unique_ptr<const Program> program;
  };
  Entry* FindEntry(ProgramId id);

  const int64_t capacity_;
  int64_t next_id_ = 1;
  int64_t now_ = 0;
  std::vector<Entry> entries_;  // few: searched in order
};

// Equal programs have equal hashes.
uint64_t ProgramHash(const Program& program);

}  // namespace weft
