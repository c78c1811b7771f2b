// Rules of ops that work element by element or along rows, and of moves. A sum passes through what
// is linear, and through nothing else.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/meta/rule_forms.h"

namespace weft::split {

absl::Status Cannot(std::string_view why) { return absl::UnimplementedError(AbslView(why)); }

SplitAnswer AsAsked(const SplitQuestion& q, SplitState result) {
  return {std::move(result), std::vector<SplitState>(q.states.begin(), q.states.end()), false};
}

bool OthersMirrored(const SplitQuestion& q, absl::Span<const int> except) {
  for (size_t i = 0; i < q.states.size(); ++i) {
    const bool listed =
        std::find(except.begin(), except.end(), static_cast<int>(i)) != except.end();
    if (!listed && !q.states[i].mirrored()) return false;
  }
  return true;
}

bool Want(const SplitQuestion& q, SplitAnswer& answer, int i, const SplitState& wanted) {
  if (q.states[i] == wanted) return true;
  if (!q.states[i].mirrored() || !wanted.cut()) return false;
  const int64_t block = GetDTypeInfo(q.sources[i].dtype).block_elements;
  if (wanted.axis == 0 && !IsMultipleOf(wanted, block)) return false;
  answer.sources[i] = wanted;
  return true;
}

Answer MirroredOnly(const SplitQuestion&) { return Cannot("it has no rule for cut sources"); }

Answer Elementwise(const SplitQuestion& q) {
  if (q.states[0].partial()) return Cannot("it is not linear");
  return AsAsked(q, q.states[0]);
}

Answer Unary(const SplitQuestion& q) {
  const bool linear = std::get<UnaryAttributes>(*q.attributes).kind == UnaryKind::kNeg;
  return linear ? Answer(AsAsked(q, q.states[0])) : Elementwise(q);
}

Answer Scale(const SplitQuestion& q) {
  if (q.states[0].partial() && std::get<ScaleAttributes>(*q.attributes).bias != 0) {
    return Cannot("every rank would add the bias");
  }
  return AsAsked(q, q.states[0]);
}

namespace {

// Two sources of which the second repeats over the first, where one is cut.
Answer CutBinary(const SplitQuestion& q) {
  const SplitState& state = q.states[0].cut() ? q.states[0] : q.states[1];
  const int32_t axis = state.axis;
  SplitAnswer answer = AsAsked(q, state);
  if (q.sources[0].ne[axis] != q.result.ne[axis]) return Cannot("the cut axis is repeated");
  if (!Want(q, answer, 0, state)) return Cannot("its sources are cut in different places");
  const int64_t second = q.sources[1].ne[axis];
  if (second == 1) {
    if (!q.states[1].mirrored()) return Cannot("its sources are cut in different places");
    return answer;
  }
  if (second != q.sources[0].ne[axis]) return Cannot("the cut axis is repeated");
  if (!Want(q, answer, 1, state)) return Cannot("its sources are cut in different places");
  return answer;
}

}  // namespace

Answer Sum(const SplitQuestion& q) {
  const bool first = q.states[0].partial();
  const bool second = q.states[1].partial();
  if (first && second) return AsAsked(q, SplitState::Partial());
  if (first || second) return Cannot("every rank would add the whole of the other");
  return CutBinary(q);
}

Answer Multiply(const SplitQuestion& q) {
  const bool first = q.states[0].partial();
  const bool second = q.states[1].partial();
  if (!first && !second) return CutBinary(q);
  if (first && q.states[1].mirrored()) return AsAsked(q, SplitState::Partial());
  if (second && q.states[0].mirrored() && q.op == Op::kMul) {
    return AsAsked(q, SplitState::Partial());
  }
  return Cannot("a product of sums is no sum of products");
}

Answer AddId(const SplitQuestion& q) {
  if (!q.states[2].mirrored()) return Cannot("its ids are not mirrored");
  const SplitState& x = q.states[0];
  if (x.partial() && q.states[1].mirrored()) {
    SplitAnswer answer = AsAsked(q, x);
    answer.first_rank_computes = true;
    return answer;
  }
  if (x.partial() && q.states[1].partial()) return AsAsked(q, x);
  if (!x.CutAlong(0)) return Cannot("only rows are cut here");
  SplitAnswer answer = AsAsked(q, x);
  if (!Want(q, answer, 1, x)) return Cannot("its bias is cut in other places");
  return answer;
}

Answer Glu(const SplitQuestion& q) {
  const SplitState& state = q.states[0];
  if (q.states.size() == 2) {
    const SplitState& cut = state.cut() ? state : q.states[1];
    if (!cut.cut()) return Cannot("it is not linear");
    SplitAnswer answer = AsAsked(q, cut);
    if (!Want(q, answer, 0, cut) || !Want(q, answer, 1, cut)) {
      return Cannot("gate and up are cut in different places");
    }
    return answer;
  }
  if (!state.cut()) return Cannot("it is not linear");
  if (state.axis != 0) return AsAsked(q, state);
  // Rows [gate | up]: the parts of both halves must be the same.
  const int64_t half = q.sources[0].ne[0] / 2;
  SplitState first = SplitState::Cut(0, {});
  SplitState second = first;
  for (const CutSegment& segment : state.segments) {
    if (segment.whole.begin < half && segment.whole.end > half) {
      return Cannot("gate and up are one segment");
    }
    if (segment.whole.begin < half) {
      first.segments.push_back(segment);
      continue;
    }
    second.segments.push_back(Shifted(segment, -half));
  }
  if (first != second) return Cannot("gate and up are cut in different places");
  return AsAsked(q, first);
}

Answer RowOp(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (x.partial()) return Cannot("it is not linear");
  if (!x.cut()) return Cannot("its second source is not mirrored");
  if (x.axis == 0) return Cannot("it works along whole rows");
  SplitAnswer answer = AsAsked(q, x);
  // A weight of its own per head is cut with the heads, one for all is not.
  for (size_t i = 1; i < q.states.size(); ++i) {
    const bool repeated = q.sources[i].ne[x.axis] == 1;
    const SplitState wanted = repeated ? SplitState::Mirrored() : x;
    if (!Want(q, answer, static_cast<int>(i), wanted) && q.states[i] != wanted) {
      return Cannot("its weight is cut in other places");
    }
  }
  return answer;
}

Answer LinearRowOp(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (x.partial()) return AsAsked(q, x);
  if (x.axis != 0) return AsAsked(q, x);
  if (q.op == Op::kSumRows && IsPartition(x)) return AsAsked(q, SplitState::Partial());
  return Cannot("it works along whole rows");
}

Answer TopK(const SplitQuestion& q) {
  // Positions are of tokens, dimension 1, which nothing cuts.
  const SplitState& x = q.states[0];
  if (!x.cut() || x.axis < 2 || !OthersMirrored(q, {0})) return Cannot("it works along whole rows");
  return AsAsked(q, x);
}

Answer SampleCandidates(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (!x.CutAlong(0) || x.segments.size() != 1 || !IsPartition(x) || !OthersMirrored(q, {0})) {
    return Cannot("only a vocabulary cut into consecutive parts gives candidates");
  }
  return AsAsked(q, {SplitKind::kCandidates, 0, x.segments});
}

OpAttributes LocalCandidates(const SplitQuestion& q, const SplitAnswer&, Local, int32_t rank) {
  auto attributes = std::get<SampleCandidatesAttributes>(*q.attributes);
  if (q.states[0].cut()) {
    const IndexRange ids = q.states[0].segments[0].ranks[rank];
    attributes.first_id += static_cast<int32_t>(ids.begin);
    attributes.k = static_cast<int32_t>(std::min<int64_t>(attributes.k, ids.size()));
  }
  return attributes;
}

Answer Copy(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (x.partial()) {
    const bool exact = q.sources[0].dtype == DType::kF32 && q.result.dtype == DType::kF32;
    return exact ? Answer(AsAsked(q, x)) : Cannot("addends would be rounded one by one");
  }
  const int64_t block = GetDTypeInfo(q.result.dtype).block_elements;
  if (x.CutAlong(0) && !IsMultipleOf(x, block)) return Cannot("parts are no whole blocks");
  return AsAsked(q, x);
}

Answer Concat(const SplitQuestion& q) {
  const int32_t along = std::get<AxisAttributes>(*q.attributes).axis;
  if (q.states[0].partial() && q.states[1].partial()) return AsAsked(q, q.states[0]);
  const SplitState& state = q.states[0].cut() ? q.states[0] : q.states[1];
  if (!state.cut()) return Cannot("one part is a sum, the other is not");
  if (state.axis == along) return Cannot("the cut axis is the one that grows");
  SplitAnswer answer = AsAsked(q, state);
  if (!Want(q, answer, 0, state) || !Want(q, answer, 1, state)) {
    return Cannot("its sources are cut in different places");
  }
  return answer;
}

Answer Repeat(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (x.cut() && q.sources[0].ne[x.axis] != q.result.ne[x.axis]) {
    return Cannot("the cut axis is repeated");
  }
  return AsAsked(q, x);
}

OpAttributes LocalRepeat(const SplitQuestion& q, const SplitAnswer& a, Local, int32_t rank) {
  return RepeatAttributes{LocalExtents(a.result, q.result.ne, rank)};
}

Answer Pad(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (x.cut() && q.sources[0].ne[x.axis] != q.result.ne[x.axis]) {
    return Cannot("the cut axis grows");
  }
  return AsAsked(q, x);
}

}  // namespace weft::split
