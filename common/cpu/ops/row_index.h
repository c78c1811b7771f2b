// Rows of a tensor by one number.
#pragma once

#include <cstdint>

#include "common/cpu/reference/host_tensor.h"

namespace weft::cpu {

// Place of row number `row` in the order of the extents.
struct RowIndex {
  int64_t i1;
  int64_t i2;
  int64_t i3;
};
inline RowIndex RowAt(const Extents& ne, int64_t row) {
  return {row % ne[1], row / ne[1] % ne[2], row / ne[1] / ne[2]};
}

// First element of a row of F32.
inline float* FloatRow(const reference::HostTensor& tensor, const RowIndex& at) {
  return reinterpret_cast<float*>(tensor.Address(0, at.i1, at.i2, at.i3));
}

}  // namespace weft::cpu
