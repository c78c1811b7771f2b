#include "coordinator/kv_cache/page_tables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/graph/op.h"

namespace weft {

PageTables::PageTables(int32_t sequences, int32_t pages_per_sequence, int32_t pages)
    : pages_per_sequence_(pages_per_sequence), pages_(sequences) {
  for (int32_t page = pages - 1; page >= 1; --page) free_.push_back(page);
}

int64_t PageTables::capacity() const { return pages_per_sequence_ * kPageTokens; }

absl::Status PageTables::Reserve(int32_t sequence, int64_t length) {
  std::vector<int32_t>& pages = pages_[sequence];
  if (length > capacity()) {
    return absl::OutOfRangeError(
        absl::StrCat("sequence of ", length, " tokens does not fit the context of ", capacity()));
  }
  const int64_t missing = CeilDivide(length, kPageTokens) - static_cast<int64_t>(pages.size());
  if (missing > free_pages()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV cache is full: ", missing, " pages needed, ", free_pages(), " free"));
  }
  for (int64_t i = 0; i < missing; ++i) {
    const auto entry = static_cast<int32_t>(sequence * pages_per_sequence_ + pages.size());
    updates_.push_back({0, entry, free_.back()});
    pages.push_back(free_.back());
    free_.pop_back();
  }
  return absl::OkStatus();
}

void PageTables::Truncate(int32_t sequence, int64_t length) {
  std::vector<int32_t>& pages = pages_[sequence];
  const auto keep = static_cast<size_t>(CeilDivide(length, kPageTokens));
  while (pages.size() > keep) {
    free_.push_back(pages.back());
    pages.pop_back();
    // The stale entry stays in the device's table: no valid position reads it.
  }
}

int32_t PageTables::Slot(int32_t sequence, int64_t position) const {
  const auto index = static_cast<size_t>(position / kPageTokens);
  WEFT_CHECK(index < pages_[sequence].size());
  return static_cast<int32_t>(pages_[sequence][index] * kPageTokens + position % kPageTokens);
}

std::vector<TableUpdate> PageTables::TakeUpdates() { return std::exchange(updates_, {}); }

}  // namespace weft
