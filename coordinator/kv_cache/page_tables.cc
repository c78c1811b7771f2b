#include "coordinator/kv_cache/page_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/graph/op.h"

namespace weft {

PageTables::PageTables(int32_t sequences, int32_t pages_per_sequence, int32_t pages)
    : pages_per_sequence_(pages_per_sequence),
      tables_(sequences),
      users_(pages, 0),
      place_(pages),
      index_(pages) {
  for (int32_t page = pages - 1; page >= 1; --page) free_.push_back(page);
}

int64_t PageTables::capacity() const { return pages_per_sequence_ * kPageTokens; }

int32_t PageTables::TakePage() {
  if (!free_.empty()) {
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  const int32_t page = kept_.front();
  kept_.pop_front();
  index_.Forget(page);
  return page;
}

void PageTables::Append(int32_t sequence, int32_t page) {
  std::vector<int32_t>& pages = tables_[sequence].pages;
  const auto entry = static_cast<int32_t>(sequence * pages_per_sequence_ + pages.size());
  updates_.push_back({0, entry, page});
  pages.push_back(page);
  ++users_[page];
}

absl::Status PageTables::Reserve(int32_t sequence, int64_t length) {
  if (length > capacity()) {
    return absl::OutOfRangeError(
        absl::StrCat("sequence of ", length, " tokens does not fit the context of ", capacity()));
  }
  const int64_t missing =
      CeilDivide(length, kPageTokens) - static_cast<int64_t>(tables_[sequence].pages.size());
  if (missing > free_pages()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV cache is full: ", missing, " pages needed, ", free_pages(), " free"));
  }
  for (int64_t i = 0; i < missing; ++i) Append(sequence, TakePage());
  return absl::OkStatus();
}

void PageTables::ReleaseLast(Table& table) {
  const int32_t page = table.pages.back();
  table.pages.pop_back();
  if (table.prefixes.size() > table.pages.size()) table.prefixes.pop_back();
  // The stale entry stays in the device's table: no valid position reads it.
  if (--users_[page] > 0) return;
  if (index_.Knows(page)) {
    // The end of a text goes before its beginning, which more texts may share.
    place_[page] = kept_.insert(kept_.end(), page);
  } else {
    free_.push_back(page);
  }
}

int64_t PageTables::Truncate(int32_t sequence, int64_t length) {
  Table& table = tables_[sequence];
  const auto keep = static_cast<size_t>(CeilDivide(length, kPageTokens));
  while (table.pages.size() > keep) ReleaseLast(table);
  if (length % kPageTokens == 0 || table.pages.size() < keep) return length;
  // What follows the cut will be written anew.
  const int32_t cut = table.pages.back();
  if (users_[cut] > 1) {
    ReleaseLast(table);
    return length / kPageTokens * kPageTokens;
  }
  index_.Forget(cut);
  if (table.prefixes.size() == table.pages.size()) table.prefixes.pop_back();
  return length;
}

int32_t PageTables::Slot(int32_t sequence, int64_t position) const {
  const std::vector<int32_t>& pages = tables_[sequence].pages;
  const auto index = static_cast<size_t>(position / kPageTokens);
  WEFT_CHECK(index < pages.size());
  return static_cast<int32_t>(pages[index] * kPageTokens + position % kPageTokens);
}

int64_t PageTables::Adopt(int32_t sequence, absl::Span<const int32_t> tokens) {
  Table& table = tables_[sequence];
  WEFT_CHECK(table.pages.empty());
  PrefixId prefix = kEmptyPrefix;
  int64_t held = 0;
  while (held + kPageTokens < static_cast<int64_t>(tokens.size()) && held < capacity()) {
    const std::optional<KnownPage> known = index_.Find(prefix, tokens.subspan(held, kPageTokens));
    if (!known) break;
    if (users_[known->page] == 0) kept_.erase(place_[known->page]);
    Append(sequence, known->page);
    prefix = known->prefix;
    table.prefixes.push_back(prefix);
    held += kPageTokens;
  }
  return held;
}

void PageTables::Publish(int32_t sequence, absl::Span<const int32_t> tokens) {
  Table& table = tables_[sequence];
  const size_t whole = std::min(tokens.size() / kPageTokens, table.pages.size());
  while (table.prefixes.size() < whole) {
    const size_t at = table.prefixes.size();
    const PrefixId before = at == 0 ? kEmptyPrefix : table.prefixes.back();
    const absl::Span<const int32_t> page = tokens.subspan(at * kPageTokens, kPageTokens);
    // Another sequence may have come first: its page is the one that others get.
    const std::optional<KnownPage> known = index_.Find(before, page);
    table.prefixes.push_back(known ? known->prefix : index_.Insert(before, page, table.pages[at]));
  }
}

std::vector<TableUpdate> PageTables::TakeUpdates() { return std::exchange(updates_, {}); }

}  // namespace weft
