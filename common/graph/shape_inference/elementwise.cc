// Shape rules of the element-by-element ops.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {

Result Binary(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  if (!CanBroadcast(sources[1].ne, sources[0].ne)) {
    return Bad(absl::StrCat("cannot repeat ", ExtentsText(sources[1].ne), " to ",
                            ExtentsText(sources[0].ne)));
  }
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result AddId(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  RETURN_IF_ERROR(NeedI32Rows(sources, 2));
  const Extents& x = sources[0].ne;
  const Extents& bias = sources[1].ne;
  if (x[3] != 1 || bias[0] != x[0] || bias[2] != 1 || bias[3] != 1) {
    return Bad(absl::StrCat("bias ", ExtentsText(bias), " does not fit ", ExtentsText(x)));
  }
  RETURN_IF_ERROR(NeedExtents(sources, 2, {x[1], x[2], 1, 1}));
  return PackedLayout(DType::kF32, x);
}

Result Elementwise(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result Scale(const OpAttributes& attributes, Sources sources) {
  const auto& scale = std::get<ScaleAttributes>(attributes);
  RETURN_IF_ERROR(NeedFinite({scale.factor, scale.bias}));
  return Elementwise(attributes, sources);
}

Result Clamp(const OpAttributes& attributes, Sources sources) {
  // Either bound may be infinite; a NaN fails the comparison.
  const auto& clamp = std::get<ClampAttributes>(attributes);
  if (!(clamp.low <= clamp.high)) {
    return Bad(absl::StrCat("bounds ", clamp.low, " and ", clamp.high));
  }
  return Elementwise(attributes, sources);
}

Result Unary(const OpAttributes& attributes, Sources sources) {
  if (static_cast<int>(std::get<UnaryAttributes>(attributes).kind) >= kUnaryKindCount) {
    return Bad("unknown kind");
  }
  return Elementwise(attributes, sources);
}

Result Glu(const OpAttributes& attributes, Sources sources) {
  const auto& glu = std::get<GluAttributes>(attributes);
  if (glu.kind > GluKind::kSwigluOai) return Bad("unknown kind");
  RETURN_IF_ERROR(NeedFinite({glu.alpha, glu.limit}));
  // The second half of the gate is clamped to [-limit, limit].
  if (glu.limit < 0) return Bad(absl::StrCat("limit ", glu.limit));
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  Extents ne = sources[0].ne;
  if (sources.size() == 2) {
    RETURN_IF_ERROR(NeedF32Rows(sources, 1));
    RETURN_IF_ERROR(NeedExtents(sources, 1, ne));
    if (glu.swapped) return Bad("swapped is for one source");
  } else {
    if (ne[0] % 2 != 0) return Bad(absl::StrCat("rows of ", ne[0], " have no halves"));
    ne[0] /= 2;
  }
  return PackedLayout(DType::kF32, ne);
}

}  // namespace weft::infer
