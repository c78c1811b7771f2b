// The merge loop that byte-pair encoding and SentencePiece share: join the best adjacent pair until
// none can be joined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace weft {

inline constexpr uint32_t kNoMerge = UINT32_MAX;

// A stretch of text during merging, in a doubly linked list by index.
struct MergeSymbol {
  int32_t start = 0;   // byte offset
  int32_t length = 0;  // bytes; 0 once it was merged into its left neighbour
  int32_t previous = -1;
  int32_t next = -1;
  int32_t id = -1;           // what it is to the caller
  int32_t joined_id = -1;    // what it and its right neighbour would become
  uint32_t rank = kNoMerge;  // rank of that merge, lower first; kNoMerge: they do not merge
};

struct MergeRule {
  uint32_t rank = kNoMerge;  // below kNoMerge
  int32_t joined_id = -1;
};

// Joins adjacent pairs of `symbols` (linked in order, `length` > 0) until no rule applies: lowest
// rank first, among equals the leftmost. `find_rule(left, right)` gives the rule for two
// neighbours, or nothing. Adds to `queue_operations` the number of queue insertions and removals;
// each merge causes at most two insertions, so that n symbols take O(n log n) whatever they are.
// Source: spec chapters I.3 (step 4), I.4 (step 2) and INV-I3.
template <typename FindRule>
void MergeSymbols(std::vector<MergeSymbol>* symbols, const FindRule& find_rule,
                  int64_t* queue_operations) {
  std::vector<MergeSymbol>& list = *symbols;
  // An entry is rank and index of the left symbol in one number, so that the order of entries is
  // the order of numbers. It is stale if the pair at that index has another rank by now; an entry
  // that matches is as good as the one that was pushed for the present pair, since both are the
  // same number.
  const auto update = [&](int32_t index) {
    MergeSymbol& left = list[index];
    left.rank = kNoMerge;
    if (left.next < 0) return false;
    const std::optional<MergeRule> rule =
        find_rule(std::as_const(left), std::as_const(list[left.next]));
    if (!rule.has_value()) return false;
    left.rank = rule->rank;
    left.joined_id = rule->joined_id;
    return true;
  };
  const auto entry_of = [&](int32_t index) {
    return (static_cast<uint64_t>(list[index].rank) << 32) | static_cast<uint32_t>(index);
  };
  std::vector<uint64_t> entries;
  entries.reserve(list.size());
  for (int32_t index = 0; index < static_cast<int32_t>(list.size()); ++index) {
    if (update(index)) entries.push_back(entry_of(index));
  }
  *queue_operations += static_cast<int64_t>(entries.size());
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue(std::greater<>(),
                                                                             std::move(entries));
  const auto refresh = [&](int32_t index) {
    if (index < 0 || !update(index)) return;
    queue.push(entry_of(index));
    ++*queue_operations;
  };
  while (!queue.empty()) {
    const uint64_t entry = queue.top();
    queue.pop();
    ++*queue_operations;
    const auto index = static_cast<int32_t>(entry & UINT32_MAX);
    MergeSymbol& left = list[index];
    if (left.rank != static_cast<uint32_t>(entry >> 32)) continue;
    MergeSymbol& right = list[left.next];
    left.length += right.length;
    left.id = left.joined_id;
    left.next = right.next;
    if (left.next >= 0) list[left.next].previous = index;
    right.length = 0;
    right.rank = kNoMerge;
    refresh(index);
    refresh(left.previous);
  }
}

}  // namespace weft
