#include "coordinator/meta/split_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Applies `change` to every bound.
template <typename Change>
SplitState WithBounds(SplitState state, Change change) {
  const auto apply = [&](IndexRange& range) {
    range.begin = change(range.begin);
    range.end = change(range.end);
  };
  for (CutSegment& segment : state.segments) {
    apply(segment.whole);
    for (IndexRange& range : segment.ranks) apply(range);
  }
  return state;
}

}  // namespace

CutSegment Shifted(CutSegment segment, int64_t by) {
  const auto shift = [by](IndexRange& range) { range = {range.begin + by, range.end + by}; };
  shift(segment.whole);
  std::for_each(segment.ranks.begin(), segment.ranks.end(), shift);
  return segment;
}

SplitState AlongAxis(const SplitState& cut, int32_t axis) {
  SplitState moved = cut;
  moved.axis = axis;
  return moved;
}

int64_t LocalExtent(const SplitState& cut, int32_t rank) {
  int64_t sum = 0;
  for (const CutSegment& segment : cut.segments) sum += segment.ranks[rank].size();
  return sum;
}

Extents LocalExtents(const SplitState& state, const Extents& whole, int32_t rank) {
  Extents local = whole;
  if (state.cut()) local[state.axis] = LocalExtent(state, rank);
  return local;
}

absl::StatusOr<TensorLayout> SliceLayout(const TensorLayout& layout, const SplitState& state,
                                         int32_t rank) {
  return PackedLayout(layout.dtype, LocalExtents(state, layout.ne, rank));
}

bool HasPart(const SplitState& state, int32_t rank) {
  return !state.cut() || LocalExtent(state, rank) > 0;
}

bool IsPartition(const SplitState& cut) {
  return std::all_of(cut.segments.begin(), cut.segments.end(), [](const CutSegment& segment) {
    int64_t sum = 0;
    for (const IndexRange& range : segment.ranks) sum += range.size();
    return sum == segment.whole.size();
  });
}

bool IsMultipleOf(const SplitState& cut, int64_t unit) {
  bool all = true;
  WithBounds(cut, [&](int64_t bound) {
    all = all && bound % unit == 0;
    return bound;
  });
  return all;
}

SplitState DividedBy(const SplitState& cut, int64_t unit) {
  return WithBounds(cut, [unit](int64_t bound) { return bound / unit; });
}

SplitState MultipliedBy(const SplitState& cut, int64_t unit) {
  return WithBounds(cut, [unit](int64_t bound) { return bound * unit; });
}

SplitState Simplified(SplitState state) {
  if (!state.cut()) return state;
  for (const CutSegment& segment : state.segments) {
    for (const IndexRange& range : segment.ranks) {
      if (range != segment.whole) return state;
    }
  }
  return SplitState::Mirrored();
}

SplitState CutAtBounds(int32_t axis, absl::Span<const int64_t> bounds) {
  CutSegment segment;
  segment.whole = {bounds.front(), bounds.back()};
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    segment.ranks.push_back({bounds[r], bounds[r + 1]});
  }
  return SplitState::Cut(axis, {std::move(segment)});
}

std::string SplitText(const SplitState& state) {
  switch (state.kind) {
    case SplitKind::kMirrored:
      return "mirrored";
    case SplitKind::kPartial:
      return "partial";
    case SplitKind::kCandidates:
      return "candidates";
    case SplitKind::kCut:
      break;
  }
  std::string text = absl::StrCat("cut along ", state.axis, ":");
  for (size_t s = 0; s < state.segments.size(); ++s) {
    if (s > 0) text += " |";
    for (const IndexRange& range : state.segments[s].ranks) {
      absl::StrAppend(&text, " ", range.begin, "-", range.end);
    }
  }
  return text;
}

}  // namespace weft
