#include "coordinator/kv_cache/prefix_index.h"

#include <algorithm>

#include "common/base/check.h"

namespace weft {

PrefixIndex::Key PrefixIndex::KeyOf(PrefixId before, absl::Span<const int32_t> tokens) {
  WEFT_CHECK(tokens.size() == static_cast<size_t>(kPageTokens));
  Key key;
  key.first = before;
  std::copy(tokens.begin(), tokens.end(), key.second.begin());
  return key;
}

std::optional<KnownPage> PrefixIndex::Find(PrefixId before,
                                           absl::Span<const int32_t> tokens) const {
  const auto found = pages_.find(KeyOf(before, tokens));
  if (found == pages_.end()) return std::nullopt;
  return found->second;
}

PrefixId PrefixIndex::Insert(PrefixId before, absl::Span<const int32_t> tokens, int32_t page) {
  const Key key = KeyOf(before, tokens);
  WEFT_CHECK(!Knows(page));
  WEFT_CHECK(pages_.emplace(key, KnownPage{page, next_}).second);
  of_page_[page] = key;
  return next_++;
}

void PrefixIndex::Forget(int32_t page) {
  if (!Knows(page)) return;
  pages_.erase(*of_page_[page]);
  of_page_[page].reset();
}

}  // namespace weft
