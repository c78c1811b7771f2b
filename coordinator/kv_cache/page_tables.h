// Which page of the KV cache holds which positions of which sequence: host-side bookkeeping, no
// memory of its own.
//
// All layers share one table: page ids are global (decision 12). Page 0 is scratch for padding rows
// and is never handed out.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/program/program_host.h"

namespace weft {

class PageTables {
 public:
  // `pages` counts page 0. Sequences are numbered from 0 and start empty.
  PageTables(int32_t sequences, int32_t pages_per_sequence, int32_t pages);

  // Makes room for positions [0, length) of a sequence, taking pages as needed.
  // Errors: OUT_OF_RANGE if the sequence cannot be that long; RESOURCE_EXHAUSTED if pages ran out.
  // Nothing changes then.
  absl::Status Reserve(int32_t sequence, int64_t length);

  // Gives back the pages that hold no position below `length`.
  void Truncate(int32_t sequence, int64_t length);

  // Where a reserved position lies: page * 16 + place in the page.
  int32_t Slot(int32_t sequence, int64_t position) const;

  // Table entries that changed since the last call, for the next step.
  std::vector<TableUpdate> TakeUpdates();

  int32_t free_pages() const { return static_cast<int32_t>(free_.size()); }
  int64_t capacity() const;  // positions of one sequence

 private:
  int32_t pages_per_sequence_;
  std::vector<std::vector<int32_t>> pages_;  // by sequence, in order of position
  std::vector<int32_t> free_;                // handed out from the back: lowest id first
  std::vector<TableUpdate> updates_;
};

}  // namespace weft
