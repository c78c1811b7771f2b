// Tensor layouts to and from messages.
#pragma once

#include "absl/status/statusor.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

namespace proto {
class TensorLayout;
}

void EncodeLayout(const TensorLayout& layout, proto::TensorLayout& message);

// A layout whose data type is known, whose extents are not negative and whose size in elements and
// bytes does not overflow, so that the functions of tensor_layout.h may be called with it. Errors:
// INVALID_ARGUMENT "ne has 3 values, want 4".
absl::StatusOr<TensorLayout> DecodeLayout(const proto::TensorLayout& message);

}  // namespace weft
