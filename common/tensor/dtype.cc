#include "common/tensor/dtype.h"

#include <array>

#include "absl/strings/match.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"

namespace weft {
namespace {

// Source: spec H.3 (the type table of GGUF files).
constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {DType::kF32, "F32", 0, 1, 4, false, true},
    {DType::kF16, "F16", 1, 1, 2, false, true},
    {DType::kBF16, "BF16", 30, 1, 2, false, true},
    {DType::kF64, "F64", 28, 1, 8, false, false},
    {DType::kI8, "I8", 24, 1, 1, false, false},
    {DType::kI16, "I16", 25, 1, 2, false, false},
    {DType::kI32, "I32", 26, 1, 4, false, false},
    {DType::kI64, "I64", 27, 1, 8, false, false},
    {DType::kQ4_0, "Q4_0", 2, 32, 18, true, true},
    {DType::kQ4_1, "Q4_1", 3, 32, 20, true, true},
    {DType::kQ5_0, "Q5_0", 6, 32, 22, true, true},
    {DType::kQ5_1, "Q5_1", 7, 32, 24, true, true},
    {DType::kQ8_0, "Q8_0", 8, 32, 34, true, true},
    {DType::kQ2_K, "Q2_K", 10, 256, 84, true, true},
    {DType::kQ3_K, "Q3_K", 11, 256, 110, true, true},
    {DType::kQ4_K, "Q4_K", 12, 256, 144, true, true},
    {DType::kQ5_K, "Q5_K", 13, 256, 176, true, true},
    {DType::kQ6_K, "Q6_K", 14, 256, 210, true, true},
    {DType::kIQ4_NL, "IQ4_NL", 20, 32, 18, true, true},
    {DType::kIQ4_XS, "IQ4_XS", 23, 256, 136, true, true},
    {DType::kMXFP4, "MXFP4", 39, 32, 17, true, true},
    {DType::kQ8_1, "Q8_1", 9, 32, 36, true, false},
    {DType::kQ8_K, "Q8_K", 15, 256, 292, true, false},
    {DType::kIQ2_XXS, "IQ2_XXS", 16, 256, 66, true, false},
    {DType::kIQ2_XS, "IQ2_XS", 17, 256, 74, true, false},
    {DType::kIQ3_XXS, "IQ3_XXS", 18, 256, 98, true, false},
    {DType::kIQ1_S, "IQ1_S", 19, 256, 50, true, false},
    {DType::kIQ3_S, "IQ3_S", 21, 256, 110, true, false},
    {DType::kIQ2_S, "IQ2_S", 22, 256, 82, true, false},
    {DType::kIQ1_M, "IQ1_M", 29, 256, 56, true, false},
    {DType::kTQ1_0, "TQ1_0", 34, 256, 54, true, false},
    {DType::kTQ2_0, "TQ2_0", 35, 256, 66, true, false},
    {DType::kNVFP4, "NVFP4", 40, 64, 36, true, false},
}};

constexpr bool RowsMatchEnum() {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (static_cast<int>(kTable[i].dtype) != i || kTable[i].block_bytes <= 0) return false;
  }
  return true;
}
static_assert(RowsMatchEnum(), "row i of the table must be enumerator i");

}  // namespace

const DTypeInfo& GetDTypeInfo(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

absl::Span<const DTypeInfo> AllDTypes() { return kTable; }

std::optional<DType> DTypeFromGgufId(int64_t id) {
  for (const DTypeInfo& row : kTable) {
    if (row.gguf_id == id) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeInfo& row : kTable) {
    if (absl::EqualsIgnoreCase(AbslView(row.name), AbslView(name))) return row.dtype;
  }
  return std::nullopt;
}

std::optional<int64_t> RowBytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  if (elements < 0 || elements % info.block_elements != 0) return std::nullopt;
  return CheckedMultiply(elements / info.block_elements, info.block_bytes);
}

}  // namespace weft
