#include "rpc_backend/protocol/layout_codec.h"

#include <algorithm>
#include <optional>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "proto/graph.pb.h"
#include "rpc_backend/protocol/extents_codec.h"
#include "rpc_backend/protocol/field_error.h"

namespace weft {

absl::StatusOr<Extents> DecodeExtents(absl::string_view name,
                                      const google::protobuf::RepeatedField<int64_t>& field) {
  Extents extents;
  if (field.size() != static_cast<int>(extents.size())) {
    return BadField(name, absl::StrCat("(", field.size(), " values)"), "want 4 values");
  }
  for (int i = 0; i < field.size(); ++i) {
    if (field[i] < 0) return BadField(name, field[i], "is negative");
    extents[i] = field[i];
  }
  return extents;
}

absl::StatusOr<DType> DecodeDType(absl::string_view name, uint32_t type) {
  const std::optional<DType> dtype = DTypeFromGgufId(type);
  if (!dtype) return BadField(name, type, "no such data type");
  return *dtype;
}

void EncodeLayout(const TensorLayout& layout, proto::TensorLayout& message) {
  message.set_type(static_cast<uint32_t>(GetDTypeInfo(layout.dtype).gguf_id));
  EncodeExtents(layout.ne, *message.mutable_ne());
  EncodeExtents(layout.nb, *message.mutable_nb());
}

absl::StatusOr<TensorLayout> DecodeLayout(const proto::TensorLayout& message) {
  TensorLayout layout;
  ASSIGN_OR_RETURN(layout.dtype, DecodeDType("type", message.type()));
  ASSIGN_OR_RETURN(layout.ne, DecodeExtents("ne", message.ne()));
  ASSIGN_OR_RETURN(layout.nb, DecodeExtents("nb", message.nb()));
  // As PackedLayout counts, with extents of 0 as 1.
  int64_t product = GetDTypeInfo(layout.dtype).block_bytes;
  for (const int64_t extent : layout.ne) {
    const std::optional<int64_t> next = CheckedMultiply(product, std::max<int64_t>(extent, 1));
    if (!next) return BadField("ne", ExtentsText(layout.ne), "too many elements");
    product = *next;
  }
  return layout;
}

}  // namespace weft
