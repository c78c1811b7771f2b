// Shape rules and costs of the products (spec 0.2 and 0.3).
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {
namespace {

absl::Status NeedMatrix(Sources sources) {
  const TensorLayout& a = sources[0];
  if (!GetDTypeInfo(a.dtype).codec) {
    return Bad(absl::StrCat("cannot multiply by ", AbslView(DTypeName(a.dtype))));
  }
  if (!HasContiguousRows(a)) return Bad("the matrix has rows with gaps");
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  if (a.ne[0] != sources[1].ne[0]) {
    return Bad(
        absl::StrCat("inner extents differ: ", LayoutText(a), " and ", LayoutText(sources[1])));
  }
  return absl::OkStatus();
}

}  // namespace

Result MulMat(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedMatrix(sources));
  const Extents& a = sources[0].ne;
  const Extents& b = sources[1].ne;
  for (int i = 2; i < 4; ++i) {
    if (a[i] == 0 || b[i] % a[i] != 0) {
      return Bad(absl::StrCat("batch extents ", ExtentsText(a), " do not divide ", ExtentsText(b)));
    }
  }
  return PackedLayout(DType::kF32, {a[1], b[1], b[2], b[3]});
}

Result MulMatId(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedMatrix(sources));
  RETURN_IF_ERROR(NeedI32Rows(sources, 2));
  const Extents& a = sources[0].ne;
  const Extents& b = sources[1].ne;
  const Extents& ids = sources[2].ne;
  if (a[3] != 1 || b[3] != 1 || ids[2] != 1 || ids[3] != 1) return Bad("too many dimensions");
  if (ids[1] != b[2] || (b[1] != 1 && b[1] != ids[0])) {
    return Bad(absl::StrCat("ids ", ExtentsText(ids), " do not fit ", ExtentsText(b)));
  }
  return PackedLayout(DType::kF32, {a[1], ids[0], ids[1], 1});
}

Result SolveTri(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  const Extents& a = sources[0].ne;
  const Extents& b = sources[1].ne;
  if (a[0] != a[1]) return Bad("matrix is not square");
  RETURN_IF_ERROR(NeedExtents(sources, 1, {b[0], a[1], a[2], a[3]}));
  return PackedLayout(DType::kF32, b);
}

OpCost MulMatCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result) {
  OpCost cost = StreamCost(attributes, sources, result);
  cost.flops = SaturatingMultiply(2 * sources[0].ne[0], ElementCount(result));
  return cost;
}

OpCost MulMatIdCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result) {
  OpCost cost = MulMatCost(attributes, sources, result);
  // At most as many experts are read as there are choices.
  const TensorLayout& experts = sources[0];
  const int64_t choices = ElementCount(sources[2]);
  if (choices < experts.ne[2]) {
    const int64_t rows = experts.ne[1] * RowByteSize(experts);
    cost.bytes_read -= (experts.ne[2] - choices) * rows;
  }
  return cost;
}

}  // namespace weft::infer
