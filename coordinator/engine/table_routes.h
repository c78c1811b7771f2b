// Which process of a group still has to hear of which page table entries and page copies.
//
// Processes without anything to do in a step are not launched; what the step changes in tables and
// caches that they have waits for their next one. A process that gets a table later than others
// gets all that it holds.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/program/program.h"
#include "common/program/program_host.h"

namespace weft {

// Not thread-safe.
class TableRoutes {
 public:
  explicit TableRoutes(int32_t processes) : processes_(static_cast<size_t>(processes)) {}

  // Process `process` has the page tables and caches of a program with these slots.
  void AddSlots(int32_t process, absl::Span<const Slot> slots);

  // Errors: INVALID_ARGUMENT for a table or entry or cache that no process has.
  absl::Status Check(const StepInput& input) const;
  // Takes note of a checked step.
  void Note(const StepInput& input);

  // What has gathered for the process: updates in the order of entries, and copies in the caches
  // among `slots`. Done forgets them, when they are under way.
  void Gather(int32_t process, absl::Span<const Slot> slots, StepInput& input) const;
  void Done(int32_t process, const StepInput& input);

 private:
  struct Process {
    absl::flat_hash_map<int32_t, int32_t> table_entries;
    std::set<std::pair<int32_t, int32_t>> dirty;  // table and entry
    absl::flat_hash_set<int32_t> caches;
    std::vector<PageCopy> copies;
  };

  std::vector<Process> processes_;
  absl::flat_hash_map<int32_t, std::vector<int32_t>> tables_;  // as after the last step
};

}  // namespace weft
