// Rules of views: which part of a cut tensor each rank's view shows (spec D.4, D.5).
#include <algorithm>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "coordinator/meta/restated_view.h"
#include "coordinator/meta/rule_forms.h"

namespace weft::split {
namespace {

// A view in terms of the axis that its packed source is cut along.
struct ViewOverCut {
  IndexRange shown;          // along the axis, of the whole source
  int32_t axis = -1;         // the view's dimension that is cut
  int64_t unit = 1;          // indices of the source's axis per index of that dimension
  int64_t outer_offset = 0;  // of the view's first byte, in steps of the axis' whole extent
  int64_t inner_offset = 0;  // in bytes within one step of the axis
};

// Bytes from one index of the axis to the next, and from one whole run over the axis to the next.
int64_t Step(const TensorLayout& layout, int32_t axis) { return layout.nb[axis]; }
int64_t Run(const TensorLayout& layout, int32_t axis) { return layout.nb[axis] * layout.ne[axis]; }

absl::StatusOr<ViewOverCut> Locate(const ViewAttributes& view, const TensorLayout& source,
                                   int32_t cut_axis) {
  if (!IsContiguous(source)) return Cannot("a view of a cut tensor with gaps");
  if (cut_axis == 0 && GetDTypeInfo(source.dtype).block_elements != 1) {
    return Cannot("a view of rows of blocks that are cut");
  }
  const int64_t step = Step(source, cut_axis);
  const int64_t run = Run(source, cut_axis);
  ViewOverCut at;
  at.outer_offset = view.offset / run;
  at.inner_offset = view.offset % step;
  at.shown.begin = view.offset % run / step;
  // Dimensions along the axis must nest without gaps: head elements, then heads.
  absl::InlinedVector<int, 4> along;
  for (int d = 0; d < 4; ++d) {
    if (view.ne[d] > 1 && view.nb[d] >= step && view.nb[d] < run) along.push_back(d);
  }
  std::sort(along.begin(), along.end(), [&](int a, int b) { return view.nb[a] < view.nb[b]; });
  int64_t count = 1;
  for (const int d : along) {
    if (view.nb[d] != count * step) return Cannot("a view that skips indices of the cut axis");
    at.unit = count;
    at.axis = d;
    count *= view.ne[d];
  }
  if (at.axis < 0) {
    if (source.ne[cut_axis] != 1) return Cannot("a view of one index of the cut axis");
    return Cannot("a view without the cut axis");
  }
  at.shown.end = at.shown.begin + count;
  if (at.shown.end > source.ne[cut_axis]) return Cannot("a view across runs of the cut axis");
  for (int d = 0; d < 4; ++d) {
    const bool outer = view.ne[d] > 1 && view.nb[d] >= run;
    if (outer && view.nb[d] % run != 0) return Cannot("a view that steps across the cut axis");
  }
  return at;
}

// The segments of `cut` that make up exactly that range; nothing if none do.
std::optional<std::pair<size_t, size_t>> SegmentsOf(const SplitState& cut, IndexRange range) {
  size_t first = 0;
  while (first < cut.segments.size() && cut.segments[first].whole.begin < range.begin) ++first;
  size_t end = first;
  while (end < cut.segments.size() && cut.segments[end].whole.end <= range.end) ++end;
  if (first == end || cut.segments[first].whole.begin != range.begin ||
      cut.segments[end - 1].whole.end != range.end) {
    return std::nullopt;
  }
  return std::make_pair(first, end);
}

// Those segments as a cut of what starts at index `start`.
SplitState PartFrom(const SplitState& cut, std::pair<size_t, size_t> part, int64_t start) {
  SplitState shown = SplitState::Cut(cut.axis, {});
  for (size_t s = part.first; s < part.second; ++s) {
    shown.segments.push_back(Shifted(cut.segments[s], -start));
  }
  return shown;
}

// Product of the first `n` extents.
int64_t Inner(const Extents& ne, int n) {
  int64_t product = 1;
  for (int d = 0; d < n; ++d) product *= ne[d];
  return product;
}

// The dimension of `to` along which `cut`, along a dimension of `from`, goes on; elements keep
// their order. Nothing if there is none.
std::optional<SplitState> AcrossReshape(const SplitState& cut, const Extents& from,
                                        const Extents& to) {
  const int64_t base = Inner(from, cut.axis);
  const int64_t end = base * from[cut.axis];
  for (int d = 3; d >= 0; --d) {
    if (to[d] == 1) continue;
    const int64_t inner = Inner(to, d);
    if (inner * to[d] != end) continue;
    // Indices of the old axis per index of the new one, or the other way round.
    if (inner >= base) {
      if (inner % base != 0 || !IsMultipleOf(cut, inner / base)) return std::nullopt;
      return AlongAxis(DividedBy(cut, inner / base), d);
    }
    if (base % inner != 0) return std::nullopt;
    return AlongAxis(MultipliedBy(cut, base / inner), d);
  }
  return std::nullopt;
}

}  // namespace

Answer View(const SplitQuestion& q) {
  const SplitState& state = q.states[0];
  const auto& view = std::get<ViewAttributes>(*q.attributes);
  if (!state.cut()) {
    // A rank may hold it without its gaps.
    const TensorLayout& source = q.sources[0];
    const bool follows =
        IsContiguous(source) ||
        RestatedView(view, source, *PackedLayout(source.dtype, source.ne)).has_value();
    return follows ? Answer(AsAsked(q, state)) : Cannot("a view across gaps of its source");
  }
  const auto at = Locate(view, q.sources[0], state.axis);
  if (!at.ok()) return at.status();
  const auto part = SegmentsOf(state, at->shown);
  if (!part) return Cannot("a view that shows part of a segment");
  const SplitState shown = PartFrom(state, *part, at->shown.begin);
  if (!IsMultipleOf(shown, at->unit)) return Cannot("a view of more than one index per part");
  return AsAsked(q, Simplified(AlongAxis(DividedBy(shown, at->unit), at->axis)));
}

OpAttributes LocalView(const SplitQuestion& q, const SplitAnswer& a, Local local, int32_t rank) {
  auto view = std::get<ViewAttributes>(*q.attributes);
  const SplitState& state = q.states[0];
  if (!state.cut()) {
    if (local[0].nb == q.sources[0].nb) return view;
    return RestatedView(view, q.sources[0], local[0]).value_or(view);
  }
  const auto at = Locate(view, q.sources[0], state.axis);
  const auto part = SegmentsOf(state, at->shown);
  const int64_t run = Run(q.sources[0], state.axis);
  const int64_t local_run = Run(local[0], state.axis);
  int64_t before = 0;  // of the rank's slice, in front of the shown segments
  for (size_t s = 0; s < part->first; ++s) before += state.segments[s].ranks[rank].size();
  view.offset =
      at->outer_offset * local_run + before * Step(local[0], state.axis) + at->inner_offset;
  for (int d = 0; d < 4; ++d) {
    if (view.nb[d] >= run) view.nb[d] = view.nb[d] / run * local_run;
  }
  // Mirrored: every rank holds all that is shown.
  if (a.result.cut()) view.ne[at->axis] = LocalExtent(a.result, rank);
  return view;
}

Answer Reshape(const SplitQuestion& q) {
  const SplitState& state = q.states[0];
  if (!state.cut()) return AsAsked(q, state);
  const std::optional<SplitState> moved = AcrossReshape(state, q.sources[0].ne, q.result.ne);
  if (!moved) return Cannot("no dimension of the new shape holds the parts");
  return AsAsked(q, *moved);
}

OpAttributes LocalReshape(const SplitQuestion& q, const SplitAnswer& a, Local, int32_t rank) {
  return ReshapeAttributes{LocalExtents(a.result, q.result.ne, rank)};
}

Answer Permute(const SplitQuestion& q) {
  const SplitState& state = q.states[0];
  if (!state.cut()) return AsAsked(q, state);
  const auto& permute = std::get<PermuteAttributes>(*q.attributes);
  return AsAsked(q, AlongAxis(state, permute.axes[state.axis]));
}

Answer Transpose(const SplitQuestion& q) {
  const SplitState& state = q.states[0];
  if (!state.cut() || state.axis > 1) return AsAsked(q, state);
  return AsAsked(q, AlongAxis(state, 1 - state.axis));
}

}  // namespace weft::split
