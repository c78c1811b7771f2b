// Which page of the KV cache holds which positions of which sequence: host-side bookkeeping, no
// memory of its own.
//
// All layers share one table: page ids are global (decision 12). Page 0 is scratch for padding rows
// and is never handed out. Sequences that begin alike can share whole pages; pages of ended
// sequences are kept for others until room is needed.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/program/program_host.h"
#include "coordinator/kv_cache/prefix_index.h"

namespace weft {

class PageTables {
 public:
  // `pages` counts page 0. Sequences are numbered from 0 and start empty.
  PageTables(int32_t sequences, int32_t pages_per_sequence, int32_t pages);

  // Makes room for positions [0, length) of a sequence, taking pages as needed, those that are
  // kept last: the one longest unused first.
  // Errors: OUT_OF_RANGE if the sequence cannot be that long; RESOURCE_EXHAUSTED if pages ran out.
  // Nothing changes then.
  absl::Status Reserve(int32_t sequence, int64_t length);

  // Gives back the pages that hold no position below `length`, and the one that the cut goes
  // through if others read it too. Returns the length that is left.
  int64_t Truncate(int32_t sequence, int64_t length);

  // Where a reserved position lies: page * 16 + place in the page.
  int32_t Slot(int32_t sequence, int64_t position) const;

  // The empty sequence begins with `tokens`: gives it the pages that hold the longest known
  // beginning of them, but never all. Returns the positions that these hold.
  int64_t Adopt(int32_t sequence, absl::Span<const int32_t> tokens);

  // Steps that are over have computed positions [0, tokens.size()) of the sequence, which hold
  // `tokens`: its whole pages may be given to others.
  void Publish(int32_t sequence, absl::Span<const int32_t> tokens);

  // Table entries that changed since the last call, for the next step.
  std::vector<TableUpdate> TakeUpdates();

  // That no sequence uses, kept ones too.
  int32_t free_pages() const { return static_cast<int32_t>(free_.size() + kept_.size()); }
  // Of those, the ones that hold something that is known.
  int32_t kept_pages() const { return static_cast<int32_t>(kept_.size()); }
  int64_t capacity() const;  // positions of one sequence

 private:
  struct Table {
    std::vector<int32_t> pages;      // in order of position
    std::vector<PrefixId> prefixes;  // of its first pages: what they hold, as far as known
  };

  int32_t TakePage();
  void Append(int32_t sequence, int32_t page);
  void ReleaseLast(Table& table);

  int32_t pages_per_sequence_;
  std::vector<Table> tables_;   // by sequence
  std::vector<int32_t> users_;  // by page: sequences that have it
  std::vector<int32_t> free_;   // handed out from the back: lowest id first
  std::list<int32_t> kept_;     // no users, in the index; the longest unused first
  std::vector<std::list<int32_t>::iterator> place_;  // by page, in kept_ if it is there
  PrefixIndex index_;
  std::vector<TableUpdate> updates_;
};

}  // namespace weft
