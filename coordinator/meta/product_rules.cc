// Rules of products, look-ups, attention and recurrence.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/meta/rule_forms.h"

namespace weft::split {
namespace {

// Batch dimensions of a product: the second source is cut there, the first with it or repeated.
Answer CutBatch(const SplitQuestion& q) {
  const SplitState& x = q.states[1];
  SplitAnswer answer = AsAsked(q, x);
  const bool repeated = q.sources[0].ne[x.axis] == 1;
  if (!repeated && q.sources[0].ne[x.axis] != q.sources[1].ne[x.axis]) {
    return Cannot("the cut axis is repeated");
  }
  const SplitState wanted = repeated ? SplitState::Mirrored() : x;
  if (q.states[0] != wanted && !Want(q, answer, 0, wanted)) {
    return Cannot("its sources are cut in different places");
  }
  return answer;
}

}  // namespace

Answer MulMat(const SplitQuestion& q) {
  const SplitState& w = q.states[0];
  const SplitState& x = q.states[1];
  if (w.partial()) return Cannot("its first source is a sum");
  if (x.partial()) return w.mirrored() ? Answer(AsAsked(q, x)) : Cannot("a sum times a part");
  if (w.CutAlong(1)) {
    if (!x.mirrored()) return Cannot("rows of the weight are cut, its columns need all of x");
    return AsAsked(q, AlongAxis(w, 0));
  }
  if (w.CutAlong(0) || x.CutAlong(0)) {
    const SplitState& along = w.cut() ? w : x;
    SplitAnswer answer = AsAsked(q, SplitState::Partial());
    if (!IsPartition(along)) return Cannot("indices that two ranks hold would count twice");
    if (!Want(q, answer, 0, along) || !Want(q, answer, 1, along)) {
      return Cannot("its sources are cut in different places");
    }
    return answer;
  }
  if (x.CutAlong(1)) {
    if (!w.mirrored()) return Cannot("its sources are cut along different axes");
    return AsAsked(q, x);
  }
  if (x.cut()) return CutBatch(q);
  return Cannot("only its first source is cut, along a batch");
}

Answer MulMatId(const SplitQuestion& q) {
  const SplitState& w = q.states[0];
  const SplitState& x = q.states[1];
  if (!q.states[2].mirrored()) return Cannot("its ids are not mirrored");
  if (w.partial()) return Cannot("its weight is a sum");
  if (x.partial()) return w.mirrored() ? Answer(AsAsked(q, x)) : Cannot("a sum times a part");
  if (w.CutAlong(1)) {
    if (!x.mirrored()) return Cannot("rows of the experts are cut, their columns need all of x");
    return AsAsked(q, AlongAxis(w, 0));
  }
  if (w.CutAlong(0)) {
    SplitAnswer answer = AsAsked(q, SplitState::Partial());
    if (!IsPartition(w)) return Cannot("indices that two ranks hold would count twice");
    if (!Want(q, answer, 1, w)) return Cannot("its sources are cut in different places");
    return answer;
  }
  return Cannot("neither rows nor columns of the experts are cut");
}

Answer SolveTri(const SplitQuestion& q) {
  const SplitState& a = q.states[0];
  const SplitState& b = q.states[1];
  if (a.partial()) return Cannot("it is not linear in its matrix");
  if (b.partial()) return a.mirrored() ? Answer(AsAsked(q, b)) : Cannot("a sum and a part");
  const SplitState& cut = a.cut() ? a : b;
  if (cut.axis < 2) return Cannot("only its batch can be cut");
  SplitAnswer answer = AsAsked(q, cut);
  if (!Want(q, answer, 0, cut) || !Want(q, answer, 1, cut)) {
    return Cannot("its sources are cut in different places");
  }
  return answer;
}

Answer GetRows(const SplitQuestion& q) {
  const SplitState& table = q.states[0];
  if (!q.states[1].mirrored()) return Cannot("its ids are not mirrored");
  if (!table.cut() || table.axis == 0) return AsAsked(q, table);
  if (table.axis != 1) return Cannot("its batch is cut");
  if (q.result.dtype != DType::kF32) return Cannot("rows of integers do not add up");
  if (table.segments.size() != 1 || !IsPartition(table)) {
    return Cannot("its rows are not cut into consecutive parts");
  }
  return AsAsked(q, SplitState::Partial());
}

OpAttributes LocalGetRows(const SplitQuestion& q, const SplitAnswer&, Local, int32_t rank) {
  auto attributes = std::get<GetRowsAttributes>(*q.attributes);
  if (q.states[0].CutAlong(1)) {
    attributes.first_row += q.states[0].segments[0].ranks[rank].begin;
    attributes.partial_table = true;
  }
  return attributes;
}

Answer SetRows(const SplitQuestion& q) {
  const SplitState& rows = q.states[1];
  if (!q.states[2].mirrored()) return Cannot("its row numbers are not mirrored");
  const SplitState& state = q.states[0].cut() ? q.states[0] : rows;
  if (!state.CutAlong(0)) return Cannot("only elements of rows can be cut");
  SplitAnswer answer = AsAsked(q, state);
  // What is written into cannot be cut on the way.
  if (q.states[0] != state || !Want(q, answer, 1, state)) {
    return Cannot("rows and destination are cut in different places");
  }
  return answer;
}

Answer Rope(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (!OthersMirrored(q, {0})) return Cannot("its positions are not mirrored");
  if (!x.CutAlong(1)) return Cannot("only heads can be cut");
  return AsAsked(q, x);
}

Answer KvStore(const SplitQuestion& q) {
  const SplitState& pages = q.states[0];
  if (!q.states[2].mirrored()) return Cannot("its slots are not mirrored");
  if (!pages.CutAlong(2)) return Cannot("its pages are not cut by heads");
  SplitAnswer answer = AsAsked(q, pages);
  if (!Want(q, answer, 1, AlongAxis(pages, 1))) {
    return Cannot("its rows are not cut as its pages are");
  }
  return answer;
}

Answer PagedAttention(const SplitQuestion& q) {
  const auto& attributes = std::get<PagedAttentionAttributes>(*q.attributes);
  const int page_sources = attributes.value_dimensions == 0 ? 2 : 1;
  if (attributes.heads_per_kv != 0) return Cannot("its heads are a part already");
  const SplitState& heads = q.states[0];
  if (!heads.CutAlong(1) || !IsPartition(heads) || heads.segments.size() != 1) {
    return Cannot("its queries are not cut by heads");
  }
  const int64_t group = q.sources[0].ne[1] / q.sources[1].ne[2];
  const SplitState& pages = q.states[1];
  if (page_sources == 2 && q.states[2] != pages) return Cannot("keys and values are cut apart");
  if (pages.partial()) return Cannot("its pages are sums");
  if (pages.cut() && (pages.axis != 2 || pages.segments.size() != 1)) {
    return Cannot("its pages are not cut by heads");
  }
  for (int32_t r = 0; pages.cut() && r < q.ranks; ++r) {
    const IndexRange queries = heads.segments[0].ranks[r];
    const IndexRange keys = pages.segments[0].ranks[r];
    if (queries.size() == 0) continue;
    if (queries.begin / group < keys.begin || (queries.end - 1) / group >= keys.end) {
      return Cannot("a rank does not hold the keys of its queries");
    }
  }
  const int table = page_sources + 1;
  for (int i = table; i < table + 3; ++i) {
    if (!q.states[i].mirrored()) return Cannot("its page table or positions are not mirrored");
  }
  SplitAnswer answer = AsAsked(q, heads);
  for (int i = table + 3; i < static_cast<int>(q.states.size()); ++i) {
    if (!Want(q, answer, i, AlongAxis(heads, 0))) return Cannot("its sinks are cut elsewhere");
  }
  return answer;
}

OpAttributes LocalAttention(const SplitQuestion& q, const SplitAnswer&, Local, int32_t rank) {
  auto attributes = std::get<PagedAttentionAttributes>(*q.attributes);
  if (!q.states[0].cut()) return attributes;
  const int64_t group = q.sources[0].ne[1] / q.sources[1].ne[2];
  const int64_t first_key = q.states[1].cut() ? q.states[1].segments[0].ranks[rank].begin : 0;
  const int64_t first_query = q.states[0].segments[0].ranks[rank].begin;
  attributes.heads_per_kv = static_cast<int32_t>(group);
  attributes.head_offset = static_cast<int32_t>(first_query - first_key * group);
  return attributes;
}

Answer SsmConv(const SplitQuestion& q) {
  const SplitState& x = q.states[0];
  if (!x.CutAlong(1)) return Cannot("only its channels can be cut");
  SplitAnswer answer = AsAsked(q, AlongAxis(x, 0));
  if (!Want(q, answer, 1, x)) return Cannot("its kernel is cut elsewhere");
  return answer;
}

// Value head v reads key head v % n_k: value parts are the key parts, once per repetition.
Answer GatedDeltaNet(const SplitQuestion& q) {
  const SplitState& keys = q.states[1];
  if (!keys.CutAlong(1) || keys.segments.size() != 1 || q.states[0] != keys) {
    return Cannot("queries and keys are not cut by heads");
  }
  const int64_t n_k = q.sources[1].ne[1];
  SplitState values = SplitState::Cut(1, {});
  for (int64_t first = 0; first < q.sources[2].ne[1]; first += n_k) {
    values.segments.push_back(Shifted(keys.segments[0], first));
  }
  SplitAnswer answer = AsAsked(q, values);
  const bool fits = Want(q, answer, 2, values) && Want(q, answer, 3, values) &&
                    Want(q, answer, 4, values) && Want(q, answer, 5, AlongAxis(values, 2));
  if (!fits) return Cannot("values or states are not cut as the keys are");
  if (!OthersMirrored(q, {0, 1, 2, 3, 4, 5})) return Cannot("valid counts are not mirrored");
  return answer;
}

}  // namespace weft::split
