// Looks for numbers in tensor data that no sound model has: they turn every result into NaN.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace weft {

// Checks that the values of plain floating-point types, and the scales and minima of every block of
// quantised types, are finite. Of types that weft knows by size only, just the size is checked.
// `bytes` are those of a packed tensor. Errors: INVALID_ARGUMENT "block 7 (byte 238): d is not
// finite" for the first offender, or if `bytes` is not a whole number of blocks. Source: spec H.4,
// "Load-time data validation".
absl::Status CheckTensorData(DType dtype, absl::Span<const uint8_t> bytes);

}  // namespace weft
