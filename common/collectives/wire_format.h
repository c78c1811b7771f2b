// Ranges of a vector as they travel: F32 (or any four bytes) as they are, BF16, or Q8_0 blocks.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace weft {

// Types that a collective's values may travel as. Of those that are not the vector's own, rounding
// twice is rounding once.
bool IsWireType(DType wire);
bool IsLossyWire(DType wire);

// Bytes of that many elements on the wire. The last Q8_0 block may be padded with zeros.
int64_t WireBytes(DType wire, int64_t elements);

// All have an F32 vector on one side and WireBytes(wire, values.size()) bytes on the other.
// Errors: INVALID_ARGUMENT for values that Q8_0 cannot hold (infinities, NaN, beyond 8e6).
absl::Status EncodeWire(DType wire, absl::Span<const float> values, absl::Span<uint8_t> bytes);
void DecodeWire(DType wire, absl::Span<const uint8_t> bytes, absl::Span<float> values);
// Adds what the bytes stand for.
void AddWire(DType wire, absl::Span<const uint8_t> bytes, absl::Span<float> values);

}  // namespace weft
