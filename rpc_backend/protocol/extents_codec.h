// Four extents or strides, and data types, to and from fields of messages.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor_layout.h"
#include "google/protobuf/repeated_field.h"

namespace weft {

inline void EncodeExtents(const Extents& ne, google::protobuf::RepeatedField<int64_t>& field) {
  field.Assign(ne.begin(), ne.end());
}

// Errors: INVALID_ARGUMENT unless there are four values >= 0.
absl::StatusOr<Extents> DecodeExtents(absl::string_view name,
                                      const google::protobuf::RepeatedField<int64_t>& field);

// By GGUF's number. Errors: INVALID_ARGUMENT for one that does not exist.
absl::StatusOr<DType> DecodeDType(absl::string_view name, uint32_t type);

}  // namespace weft
