// Who sends what to whom in a collective: a pure value, the same wherever it is made.
//
// All ranks hold a vector of elements (four bytes each) of one length. A schedule cuts it into
// ranges and says for every rank, round by round, what it sends, what it receives and whether that
// is added or put in place. Nothing in it depends on when messages arrive, so neither does the
// order in which an element is summed; and all ranks end with identical bits. Every element of a
// vector is summed in one order, however long the vector is: what a token gives does not depend on
// the tokens beside it. Doubling and by parts have the same order (SumOrder).
//
// Some wire types round. Then a range is rounded where it is, too (Round::rounded), wherever its
// holder goes on with it beside those it sends it to: both sides of an exchange add rounded values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace weft {

enum class CollectiveKind : uint8_t {
  kAllReduce,      // every rank ends with the sum of all vectors
  kAllGather,      // part r of the vector is rank r's; every rank ends with all parts
  kReduceScatter,  // part r of rank r's vector ends as the sum of all vectors' parts r
  kBroadcast,      // every rank ends with the root's vector
};
std::string_view CollectiveKindName(CollectiveKind kind);

// How an all-reduce is done; of other kinds only whether hosts come first.
enum class CollectiveAlgorithm : uint8_t {
  kRecursiveDoubling,  // partners at distance 1, 2, 4, ... exchange whole vectors: fewest rounds
  kByParts,  // reduce-scatter, then all-gather, each rank to all others at once: fewest bytes
  kHostsFirstRecursiveDoubling,  // inside each host to one rank, those by doubling, and back
  kHostsFirstByParts,            // inside each host by parts, equal parts between hosts, and back
};
inline constexpr int kCollectiveAlgorithmCount = 4;
std::string_view CollectiveAlgorithmName(CollectiveAlgorithm algorithm);
bool IsByParts(CollectiveAlgorithm algorithm);
bool IsHostsFirst(CollectiveAlgorithm algorithm);

// Elements [begin, end).
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

// kTerm: kept until the end of the round, for its sum.
enum class Combine : uint8_t { kCopy, kAdd, kTerm };

// What one rank does with one other in a round. Empty ranges are no messages.
struct Exchange {
  int32_t peer = 0;
  ElementRange send;
  ElementRange receive;
  Combine combine = Combine::kCopy;
  // How many messages went before in that direction, between these two in this collective.
  int32_t send_number = 0;
  int32_t receive_number = 0;
  int32_t term = 0;  // of kTerm: which of the sum
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

// Adds `count` >= 1 terms up as recursive doubling among so many ranks does it: add(to, from) adds
// term `from` to term `to`; the sum is term 0.
template <typename Add>
void AddAsDoubling(size_t count, const Add& add) {
  const size_t core = std::bit_floor(count);
  for (size_t j = core; j < count; ++j) add(j - core, j);
  for (size_t distance = 1; distance < core; distance *= 2) {
    for (size_t i = 0; i < core; i += 2 * distance) add(i, i + distance);
  }
}

// A range that becomes the sum of terms: its own, number `own`, and those that were received; by
// AddAsDoubling.
struct TermSum {
  ElementRange range;
  int32_t terms = 0;  // 0: no sum
  int32_t own = 0;
  friend bool operator==(const TermSum&, const TermSum&) = default;
};

// Own ranges are rounded, then everything is sent, then received and combined in this order, then
// terms are added up.
struct Round {
  std::vector<ElementRange> rounded;
  std::vector<Exchange> exchanges;
  TermSum sum;
  friend bool operator==(const Round&, const Round&) = default;
};

// Numbers of messages lie below it, in every schedule.
inline constexpr int32_t kMessagesBetweenRanks = 4;

struct CollectiveSchedule {
  std::vector<std::vector<Round>> ranks;  // the rounds of each rank in which it does something
};

// What a collective is to do. Ranges that are exchanged start at multiples of kRangeElements from
// the start of the vector or of a part, so that blocks of wire types do not overlap.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  // host_of[r]: ranks with equal numbers are on one machine. As many as there are ranks.
  std::vector<int32_t> hosts;
  int64_t elements = 0;         // of kAllReduce and kBroadcast
  std::vector<int64_t> counts;  // elements by rank, of the other two; may be 0
  int32_t root = 0;             // of kBroadcast
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;

  int64_t TotalElements() const;
};
inline constexpr int64_t kRangeElements = 32;

// Counts are not negative, their sum does not overflow, there is a rank, the root is one.
CollectiveSchedule MakeSchedule(const CollectiveShape& shape);

// In which order an all-reduce sums, as text: "((0+1)+(2+3))". Equal texts, equal bits, but for
// wire types that round.
std::string SumOrder(CollectiveAlgorithm algorithm, absl::Span<const int32_t> hosts);

// What a schedule costs.
struct ScheduleCost {
  int64_t steps = 0;     // rounds in which somebody waits, one after another: the longest chain
  int64_t messages = 0;  // most that one rank sends
  int64_t elements = 0;  // most that one rank sends
  // The same of what crosses between hosts.
  int64_t outer_steps = 0;
  int64_t outer_messages = 0;
  int64_t outer_elements = 0;
};
ScheduleCost CostOf(const CollectiveSchedule& schedule, absl::Span<const int32_t> hosts);

}  // namespace weft
