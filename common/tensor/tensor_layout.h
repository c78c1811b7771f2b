// Where the elements of a tensor lie: type, extents and byte strides. Up to four dimensions,
// innermost first (the GGUF order): ne[0] is the number of elements of a row, nb[i] the distance in
// bytes between neighbours along dimension i (nb[0] is the size of one block).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"

namespace weft {

using Extents = std::array<int64_t, 4>;

struct TensorLayout {
  DType dtype = DType::kF32;
  Extents ne = {1, 1, 1, 1};
  Extents nb = {4, 4, 4, 4};

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

// A layout without gaps: nb[1] = row bytes, nb[i] = nb[i-1] * ne[i-1].
// Errors: INVALID_ARGUMENT for a negative extent, a row that is not a multiple of the block, or a
// size beyond int64_t.
absl::StatusOr<TensorLayout> PackedLayout(DType dtype, const Extents& ne);

// Number of elements. The extents of a valid layout multiply without overflow.
inline int64_t ElementCount(const Extents& ne) { return ne[0] * ne[1] * ne[2] * ne[3]; }
inline int64_t ElementCount(const TensorLayout& layout) { return ElementCount(layout.ne); }

// Number of rows: ne[1] * ne[2] * ne[3].
inline int64_t RowCount(const TensorLayout& layout) {
  return layout.ne[1] * layout.ne[2] * layout.ne[3];
}

// Bytes of one row without gaps.
int64_t RowByteSize(const TensorLayout& layout);

// Bytes from the first byte to one past the last byte of any element; 0 for an empty tensor.
// Nothing if a stride is negative or the sum overflows. (For a packed layout this is its size.)
std::optional<int64_t> ByteExtent(const TensorLayout& layout);

// True if the strides are those of PackedLayout. Dimensions of extent 1 may have any stride.
bool IsContiguous(const TensorLayout& layout);

// True if each row's elements are adjacent (nb[0] is the block size).
inline bool HasContiguousRows(const TensorLayout& layout) {
  return layout.nb[0] == GetDTypeInfo(layout.dtype).block_bytes;
}

// True if `from` repeats to `to`: every extent of `to` is a multiple of that of `from` (both
// non-zero) or both are 0.
bool CanBroadcast(const Extents& from, const Extents& to);

// "F32 [48, 7]": trailing extents of 1 are left out.
std::string LayoutText(const TensorLayout& layout);
std::string ExtentsText(const Extents& ne);

}  // namespace weft
