#include "common/tensor/tensor_layout.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"

namespace weft {

absl::StatusOr<TensorLayout> PackedLayout(DType dtype, const Extents& ne) {
  const auto bad = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat(
        AbslView(DTypeName(dtype)), " tensor of extents ", ExtentsText(ne), ": ", why));
  };
  // An extent of 0 counts as 1, so that the product of any of the extents fits, in any order, also
  // in bytes: an empty tensor can be permuted into one whose rows are not empty.
  int64_t bytes = GetDTypeInfo(dtype).block_bytes;
  for (const int64_t extent : ne) {
    if (extent < 0) return bad("negative extent");
    const std::optional<int64_t> product = CheckedMultiply(bytes, std::max<int64_t>(extent, 1));
    if (!product) return bad("too many elements");
    bytes = *product;
  }
  const std::optional<int64_t> row = RowBytes(dtype, ne[0]);
  if (!row) return bad("row is not a multiple of the type's block");
  TensorLayout layout{dtype, ne, {GetDTypeInfo(dtype).block_bytes, *row, 0, 0}};
  for (int i = 1; i < 4; ++i) {
    const std::optional<int64_t> next = CheckedMultiply(layout.nb[i], ne[i]);
    if (!next) return bad("too many bytes");
    if (i < 3) layout.nb[i + 1] = *next;
  }
  return layout;
}

int64_t RowByteSize(const TensorLayout& layout) {
  const DTypeInfo& info = GetDTypeInfo(layout.dtype);
  return layout.ne[0] / info.block_elements * info.block_bytes;
}

std::optional<int64_t> ByteExtent(const TensorLayout& layout) {
  const DTypeInfo& info = GetDTypeInfo(layout.dtype);
  int64_t last = info.block_bytes;
  for (int i = 0; i < 4; ++i) {
    if (layout.ne[i] == 0) return 0;
    if (layout.nb[i] < 0 || layout.ne[i] < 0) return std::nullopt;
    const int64_t steps = i == 0 ? layout.ne[0] / info.block_elements - 1 : layout.ne[i] - 1;
    const std::optional<int64_t> distance = CheckedMultiply(steps, layout.nb[i]);
    if (!distance) return std::nullopt;
    const std::optional<int64_t> sum = CheckedAdd(last, *distance);
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return last;
}

bool IsContiguous(const TensorLayout& layout) {
  if (!HasContiguousRows(layout)) return false;
  int64_t expected = RowByteSize(layout);
  for (int i = 1; i < 4; ++i) {
    if (layout.ne[i] != 1 && layout.nb[i] != expected) return false;
    expected *= layout.ne[i];
  }
  return true;
}

bool CanBroadcast(const Extents& from, const Extents& to) {
  for (int i = 0; i < 4; ++i) {
    if (from[i] == 0 || to[i] == 0) {
      if (from[i] != to[i]) return false;
    } else if (to[i] % from[i] != 0) {
      return false;
    }
  }
  return true;
}

std::string ExtentsText(const Extents& ne) {
  int used = 4;
  while (used > 1 && ne[used - 1] == 1) --used;
  std::string text = "[";
  for (int i = 0; i < used; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", ne[i]);
  return text + "]";
}

std::string LayoutText(const TensorLayout& layout) {
  return absl::StrCat(AbslView(DTypeName(layout.dtype)), " ", ExtentsText(layout.ne));
}

}  // namespace weft
