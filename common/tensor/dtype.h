// The element types of tensors, one row each.
//
// A quantised type stores blocks: `block_elements` consecutive elements of a row in `block_bytes`
// bytes. Extents, type ids and block layouts are those of GGUF files (spec chapter H).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"

namespace weft {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  // Known by size only: weft can list such tensors but not compute with them.
  kQ8_1,
  kQ8_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ3_XXS,
  kIQ1_S,
  kIQ3_S,
  kIQ2_S,
  kIQ1_M,
  kTQ1_0,
  kTQ2_0,
  kNVFP4,
};
inline constexpr int kDTypeCount = 33;

struct DTypeInfo {
  DType dtype;
  std::string_view name;   // as people write it: "Q4_0"
  int32_t gguf_id;         // id in GGUF files
  int32_t block_elements;  // 1 for plain types
  int32_t block_bytes;
  bool quantized;  // stored in blocks with scales
  bool codec;      // tensor/quant/reference_codec can expand it to F32
};

// The row of `dtype`.
const DTypeInfo& GetDTypeInfo(DType dtype);

// All rows, in enumerator order.
absl::Span<const DTypeInfo> AllDTypes();

inline std::string_view DTypeName(DType dtype) { return GetDTypeInfo(dtype).name; }

// By GGUF id; nothing if unknown or removed from the format.
std::optional<DType> DTypeFromGgufId(int64_t id);

// By name, ignoring case; nothing if unknown.
std::optional<DType> DTypeFromName(std::string_view name);

// Bytes of a row of `elements` (>= 0); nothing if elements is not a multiple of the block or the
// size overflows.
std::optional<int64_t> RowBytes(DType dtype, int64_t elements);

}  // namespace weft
