// Scalar conversion between F32 and every type that weft computes with: the oracle that all kernels
// are tested against.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace weft {

// IEEE half precision, round to nearest even, with denormals, infinities and NaN.
float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
// BF16: the upper half of the F32 pattern, round to nearest even, NaN made quiet.
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

// Expands `row` (whole blocks of `dtype`) to values.size() elements. F32 arithmetic in the order of
// spec H.4. Errors: INVALID_ARGUMENT if row and values do not match in size; UNIMPLEMENTED if the
// type has no codec.
absl::Status Dequantize(DType dtype, absl::Span<const uint8_t> row, absl::Span<float> values);

// The reverse. Simple types follow spec H.5 exactly; K and IQ types search scales that minimise the
// squared error. `row` need not be aligned. Non-finite input is INVALID_ARGUMENT for quantised
// types.
absl::Status Quantize(DType dtype, absl::Span<const float> values, absl::Span<uint8_t> row);

}  // namespace weft
