// Shape rules of the ops that only move data, and the checks that all rules share.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {

absl::Status Bad(const std::string& why) { return absl::InvalidArgumentError(why); }

absl::Status NeedDType(Sources sources, int index, DType dtype) {
  if (sources[index].dtype == dtype) return absl::OkStatus();
  return Bad(absl::StrCat("source ", index, " is ", LayoutText(sources[index]), ", want ",
                          AbslView(DTypeName(dtype))));
}

namespace {

absl::Status NeedRows(Sources sources, int index, DType dtype) {
  RETURN_IF_ERROR(NeedDType(sources, index, dtype));
  if (HasContiguousRows(sources[index])) return absl::OkStatus();
  return Bad(absl::StrCat("source ", index, " has rows with gaps"));
}

}  // namespace

absl::Status NeedF32Rows(Sources sources, int index) {
  return NeedRows(sources, index, DType::kF32);
}

absl::Status NeedI32Rows(Sources sources, int index) {
  return NeedRows(sources, index, DType::kI32);
}

absl::Status NeedFinite(std::initializer_list<float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return Bad(absl::StrCat("parameter ", value, " is not finite"));
  }
  return absl::OkStatus();
}

absl::Status NeedExtents(Sources sources, int index, const Extents& ne) {
  if (sources[index].ne == ne) return absl::OkStatus();
  return Bad(absl::StrCat("source ", index, " is ", LayoutText(sources[index]), ", want extents ",
                          ExtentsText(ne)));
}

Result Copy(const OpAttributes& attributes, Sources sources) {
  const DType to = std::get<CopyAttributes>(attributes).dtype;
  if (static_cast<int>(to) >= kDTypeCount) return Bad("unknown type");
  const DType from = sources[0].dtype;
  if (from != to && !(GetDTypeInfo(from).codec && GetDTypeInfo(to).codec)) {
    return Bad(absl::StrCat("no conversion from ", AbslView(DTypeName(from)), " to ",
                            AbslView(DTypeName(to))));
  }
  return PackedLayout(to, sources[0].ne);
}

Result Concat(const OpAttributes& attributes, Sources sources) {
  const int32_t axis = std::get<AxisAttributes>(attributes).axis;
  if (axis < 0 || axis > 3) return Bad(absl::StrCat("axis ", axis));
  if (sources[0].dtype != sources[1].dtype) return Bad("sources differ in type");
  if (GetDTypeInfo(sources[0].dtype).block_elements != 1) return Bad("block types");
  Extents ne = sources[0].ne;
  for (int i = 0; i < 4; ++i) {
    if (i != axis && ne[i] != sources[1].ne[i]) {
      return Bad(absl::StrCat("cannot join ", ExtentsText(ne), " and ", ExtentsText(sources[1].ne),
                              " along axis ", axis));
    }
  }
  const std::optional<int64_t> sum = CheckedAdd(ne[axis], sources[1].ne[axis]);
  if (!sum) return Bad("too long");
  ne[axis] = *sum;
  return PackedLayout(sources[0].dtype, ne);
}

Result Repeat(const OpAttributes& attributes, Sources sources) {
  const Extents& ne = std::get<RepeatAttributes>(attributes).ne;
  RETURN_IF_ERROR(NeedDType(sources, 0, DType::kF32));
  ASSIGN_OR_RETURN(const TensorLayout result, PackedLayout(DType::kF32, ne));
  if (!CanBroadcast(sources[0].ne, ne)) {
    return Bad(absl::StrCat("cannot repeat ", ExtentsText(sources[0].ne), " to ", ExtentsText(ne)));
  }
  return result;
}

Result Pad(const OpAttributes& attributes, Sources sources) {
  const Extents& after = std::get<PadAttributes>(attributes).after;
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  Extents ne = sources[0].ne;
  for (int i = 0; i < 4; ++i) {
    const std::optional<int64_t> sum = CheckedAdd(ne[i], after[i]);
    if (after[i] < 0 || !sum) return Bad(absl::StrCat("padding ", after[i]));
    ne[i] = *sum;
  }
  return PackedLayout(DType::kF32, ne);
}

Result Fill(const OpAttributes& attributes, Sources) {
  const auto& fill = std::get<FillAttributes>(attributes);
  if (std::isnan(fill.value)) return Bad("value is not a number");
  return PackedLayout(DType::kF32, fill.ne);
}

Result Receive(const OpAttributes& attributes, Sources) {
  const auto& receive = std::get<ReceiveAttributes>(attributes);
  if (static_cast<int>(receive.dtype) >= kDTypeCount) return Bad("unknown type");
  return PackedLayout(receive.dtype, receive.ne);
}

Result Diag(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  const Extents& ne = sources[0].ne;
  if (ne[1] != 1) return Bad("source is not a vector");
  return PackedLayout(DType::kF32, {ne[0], ne[0], ne[2], ne[3]});
}

Result Tri(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  if (sources[0].ne[0] != sources[0].ne[1]) return Bad("matrix is not square");
  return PackedLayout(DType::kF32, sources[0].ne);
}

Result GetRows(const OpAttributes& attributes, Sources sources) {
  const auto& part = std::get<GetRowsAttributes>(attributes);
  const TensorLayout& table = sources[0];
  const TensorLayout& ids = sources[1];
  RETURN_IF_ERROR(NeedI32Rows(sources, 1));
  if (!HasContiguousRows(table)) return Bad("the table has rows with gaps");
  const bool integers = table.dtype == DType::kI32;
  if (!integers && !GetDTypeInfo(table.dtype).codec) {
    return Bad(absl::StrCat("cannot expand rows of ", AbslView(DTypeName(table.dtype))));
  }
  if (ids.ne[1] != table.ne[2] || ids.ne[2] != table.ne[3] || ids.ne[3] != 1) {
    return Bad(
        absl::StrCat("ids ", ExtentsText(ids.ne), " do not fit table ", ExtentsText(table.ne)));
  }
  if (part.first_row < 0 || (!part.partial_table && part.first_row != 0)) {
    return Bad(absl::StrCat("a table from row ", part.first_row, " on"));
  }
  return PackedLayout(integers ? DType::kI32 : DType::kF32,
                      {table.ne[0], ids.ne[0], table.ne[2], table.ne[3]});
}

Result SetRows(const OpAttributes&, Sources sources) {
  const TensorLayout& destination = sources[0];
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  RETURN_IF_ERROR(NeedI32Rows(sources, 2));
  if (!HasContiguousRows(destination) || !GetDTypeInfo(destination.dtype).codec) {
    return Bad(absl::StrCat("cannot write rows of ", LayoutText(destination)));
  }
  const Extents& ne = destination.ne;
  RETURN_IF_ERROR(NeedExtents(sources, 1, {ne[0], sources[2].ne[0], ne[2], ne[3]}));
  RETURN_IF_ERROR(NeedExtents(sources, 2, {sources[2].ne[0], ne[2], ne[3], 1}));
  return destination;
}

}  // namespace weft::infer
