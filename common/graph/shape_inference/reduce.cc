// Shape rules of the ops that work along rows.
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/candidate_layout.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {

Result RowNorm(const OpAttributes& attributes, Sources sources) {
  const float epsilon = std::get<NormAttributes>(attributes).epsilon;
  RETURN_IF_ERROR(NeedFinite({epsilon}));
  if (epsilon < 0) return Bad(absl::StrCat("epsilon ", epsilon));
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  if (sources.size() > 1) {
    RETURN_IF_ERROR(NeedF32Rows(sources, 1));
    RETURN_IF_ERROR(NeedExtents(sources, 1, {sources[0].ne[0], 1, 1, 1}));
  }
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result SoftMax(const OpAttributes& attributes, Sources sources) {
  RETURN_IF_ERROR(NeedFinite({std::get<SoftMaxAttributes>(attributes).scale}));
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result ReduceRows(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  Extents ne = sources[0].ne;
  ne[0] = 1;
  return PackedLayout(DType::kF32, ne);
}

Result ArgMax(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  const Extents& ne = sources[0].ne;
  if (ne[0] < 1 || ne[0] > std::numeric_limits<int32_t>::max()) return Bad("row length");
  return PackedLayout(DType::kI32, {1, ne[1], ne[2], ne[3]});
}

Result TopK(const OpAttributes& attributes, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  const int32_t k = std::get<TopKAttributes>(attributes).k;
  const Extents& ne = sources[0].ne;
  if (k < 1 || k > ne[0] || ne[0] > std::numeric_limits<int32_t>::max()) {
    return Bad(absl::StrCat("k = ", k, " of rows of ", ne[0]));
  }
  if (sources.size() > 1) {
    RETURN_IF_ERROR(NeedI32Rows(sources, 1));
    RETURN_IF_ERROR(NeedExtents(sources, 1, {RowCount(sources[0]), 1, 1, 1}));
  }
  return PackedLayout(DType::kI32, {k, ne[1], ne[2], ne[3]});
}

Result SampleCandidates(const OpAttributes& attributes, Sources sources) {
  const auto& a = std::get<SampleCandidatesAttributes>(attributes);
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  const Extents& ne = sources[0].ne;
  RETURN_IF_ERROR(NeedExtents(sources, 0, {ne[0], ne[1], 1, 1}));
  if (a.first_id < 0 || ne[0] > kMostCandidateIds - a.first_id) {
    return Bad(absl::StrCat("ids from ", a.first_id, " in rows of ", ne[0]));
  }
  if (a.k < 1 || a.k > ne[0]) return Bad(absl::StrCat("k = ", a.k, " of rows of ", ne[0]));
  CandidateLayout row = {a.k, 0};
  if (sources.size() > 1) {
    RETURN_IF_ERROR(NeedI32Rows(sources, 1));
    row.changed = sources[1].ne[0];
    RETURN_IF_ERROR(NeedExtents(sources, 1, {row.changed, ne[1], 1, 1}));
    if (row.changed > kMostChangedIds) return Bad(absl::StrCat(row.changed, " changed ids"));
  }
  return PackedLayout(DType::kF32, {row.words(), ne[1], 1, 1});
}

}  // namespace weft::infer
