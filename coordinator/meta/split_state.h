// How one tensor lies on the ranks of a group: whole on each, as addends, or cut along an axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// Indices begin .. end - 1 along an axis.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// Consecutive indices of the whole tensor, and which of them each rank holds. A rank's range may be
// empty; ranges of several ranks may overlap (key heads held twice) but cover the segment.
struct CutSegment {
  IndexRange whole;
  std::vector<IndexRange> ranks;
  friend bool operator==(const CutSegment&, const CutSegment&) = default;
};

enum class SplitKind : uint8_t {
  kMirrored,    // every rank holds all of it
  kPartial,     // every rank holds a tensor of this shape; the value is their sum
  kCut,         // along `axis`, by `segments`
  kCandidates,  // rows of sample_candidates, each rank's of its part of the vocabulary: `segments`
};

// A fused tensor has several segments (queries, keys, values): a rank's slice is its parts of all,
// one behind the other.
struct SplitState {
  SplitKind kind = SplitKind::kMirrored;
  int32_t axis = 0;                  // kCut
  std::vector<CutSegment> segments;  // they cover the axis in order
  friend bool operator==(const SplitState&, const SplitState&) = default;

  bool mirrored() const { return kind == SplitKind::kMirrored; }
  bool partial() const { return kind == SplitKind::kPartial; }
  bool cut() const { return kind == SplitKind::kCut; }
  bool CutAlong(int32_t along) const { return cut() && axis == along; }

  static SplitState Mirrored() { return {}; }
  static SplitState Partial() { return {SplitKind::kPartial, 0, {}}; }
  static SplitState Cut(int32_t axis, std::vector<CutSegment> segments) {
    return {SplitKind::kCut, axis, std::move(segments)};
  }
};

// The same parts `by` indices further on.
CutSegment Shifted(CutSegment segment, int64_t by);
// The same cut along another axis.
SplitState AlongAxis(const SplitState& cut, int32_t axis);

// Elements along the axis that `rank` holds of a cut.
int64_t LocalExtent(const SplitState& cut, int32_t rank);
// The extents of the rank's slice; 0 along the axis where it holds nothing.
Extents LocalExtents(const SplitState& state, const Extents& whole, int32_t rank);
// The rank's slice of a packed tensor, packed. Errors: as PackedLayout.
absl::StatusOr<TensorLayout> SliceLayout(const TensorLayout& layout, const SplitState& state,
                                         int32_t rank);
// Whether the rank has a part of it: false for an empty slice.
bool HasPart(const SplitState& state, int32_t rank);
// Whether no index is held twice.
bool IsPartition(const SplitState& cut);
// Every bound a multiple of `unit`?
bool IsMultipleOf(const SplitState& cut, int64_t unit);
// Bounds divided (exactly) or multiplied, for an axis that a reshape splits or joins.
SplitState DividedBy(const SplitState& cut, int64_t unit);
SplitState MultipliedBy(const SplitState& cut, int64_t unit);
// Mirrored if every rank holds all of it, else the same.
SplitState Simplified(SplitState state);
// One segment of consecutive parts: bounds[r] .. bounds[r + 1] is rank r's.
SplitState CutAtBounds(int32_t axis, absl::Span<const int64_t> bounds);

// "mirrored", "partial", "cut along 1: 0-4 4-8", "cut along 0: 0-4 4-8 | 8-9 9-10".
std::string SplitText(const SplitState& state);

}  // namespace weft
