// Which page holds a known page of tokens after a known beginning.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/graph/op.h"

namespace weft {

// Stands for all tokens from the first of a text to the end of a page. Never given twice, so the
// beginnings that were forgotten are never mistaken for others.
using PrefixId = int64_t;
inline constexpr PrefixId kEmptyPrefix = 0;

struct KnownPage {
  int32_t page = 0;
  PrefixId prefix = kEmptyPrefix;
};

// Compares tokens, not only their hash: equal means equal.
class PrefixIndex {
 public:
  explicit PrefixIndex(int32_t pages) : of_page_(pages) {}

  // `tokens` are one page after `before`.
  std::optional<KnownPage> Find(PrefixId before, absl::Span<const int32_t> tokens) const;
  // They lie in `page`, of which nothing is known, and Find does not know them.
  PrefixId Insert(PrefixId before, absl::Span<const int32_t> tokens, int32_t page);
  // Whatever was known of the page.
  void Forget(int32_t page);
  bool Knows(int32_t page) const { return of_page_[page].has_value(); }

 private:
  using Tokens = std::array<int32_t, kPageTokens>;
  using Key = std::pair<PrefixId, Tokens>;

  static Key KeyOf(PrefixId before, absl::Span<const int32_t> tokens);

  absl::flat_hash_map<Key, KnownPage> pages_;
  std::vector<std::optional<Key>> of_page_;
  PrefixId next_ = kEmptyPrefix + 1;
};

}  // namespace weft
