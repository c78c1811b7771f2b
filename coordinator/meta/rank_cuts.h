// Where the heads, columns and rows of a model are cut between ranks: bounds found once per layer,
// from which every tensor's cut follows (decision 17).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/meta/split_state.h"

namespace weft {

// bounds[r] .. bounds[r + 1] of `length` indices are rank r's, in multiples of a unit: of
// `preferred`, or of `least` where a rank with a share would go empty otherwise; then each has part
// as long as there are units for all. Position j of the ranks takes the share of rank
// (j + rotation) mod n and so the rounding moves from layer to layer (spec D.8). All shares zero:
// equal ones. `least` divides `preferred`, which divides `length`, or length is the only unit.
struct RankCutRequest {
  int64_t length = 0;
  int64_t preferred = 1;
  int64_t least = 1;
  absl::Span<const double> shares;  // by rank; >= 0
  int64_t rotation = 0;
};

// Consecutive ranges, by rank, that together cover [0, length).
std::vector<IndexRange> CutBetweenRanks(const RankCutRequest& request);

// One segment with those ranges, each bound times `factor`.
CutSegment SegmentOf(absl::Span<const IndexRange> ranges, int64_t length, int64_t factor);

// The groups of `group` indices that each range touches: KV heads of query heads.
std::vector<IndexRange> GroupsOf(absl::Span<const IndexRange> ranges, int64_t group);

}  // namespace weft
