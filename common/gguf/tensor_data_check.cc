#include "common/gguf/tensor_data_check.h"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

enum class NumberFormat { kF16, kBF16, kF32, kF64, kE8M0 };

// A number at a fixed place in every block of a type.
struct CheckedField {
  DType dtype;
  int offset;
  NumberFormat format;
  std::string_view name;
};

// Source: spec H.4.
constexpr CheckedField kFields[] = {
    {DType::kF32, 0, NumberFormat::kF32, "value"},   {DType::kF16, 0, NumberFormat::kF16, "value"},
    {DType::kBF16, 0, NumberFormat::kBF16, "value"}, {DType::kF64, 0, NumberFormat::kF64, "value"},
    {DType::kQ4_0, 0, NumberFormat::kF16, "d"},      {DType::kQ4_1, 0, NumberFormat::kF16, "d"},
    {DType::kQ4_1, 2, NumberFormat::kF16, "m"},      {DType::kQ5_0, 0, NumberFormat::kF16, "d"},
    {DType::kQ5_1, 0, NumberFormat::kF16, "d"},      {DType::kQ5_1, 2, NumberFormat::kF16, "m"},
    {DType::kQ8_0, 0, NumberFormat::kF16, "d"},      {DType::kQ8_1, 0, NumberFormat::kF16, "d"},
    {DType::kQ8_1, 2, NumberFormat::kF16, "s"},      {DType::kQ8_K, 0, NumberFormat::kF32, "d"},
    {DType::kQ2_K, 80, NumberFormat::kF16, "d"},     {DType::kQ2_K, 82, NumberFormat::kF16, "dmin"},
    {DType::kQ3_K, 108, NumberFormat::kF16, "d"},    {DType::kQ4_K, 0, NumberFormat::kF16, "d"},
    {DType::kQ4_K, 2, NumberFormat::kF16, "dmin"},   {DType::kQ5_K, 0, NumberFormat::kF16, "d"},
    {DType::kQ5_K, 2, NumberFormat::kF16, "dmin"},   {DType::kQ6_K, 208, NumberFormat::kF16, "d"},
    {DType::kIQ4_NL, 0, NumberFormat::kF16, "d"},    {DType::kIQ4_XS, 0, NumberFormat::kF16, "d"},
    {DType::kMXFP4, 0, NumberFormat::kE8M0, "e"},
};

template <typename T>
bool ExponentIsNotAllOnes(const uint8_t* place, T exponent_mask) {
  T bits;
  std::memcpy(&bits, place, sizeof(bits));
  return (bits & exponent_mask) != exponent_mask;
}

bool IsFinite(NumberFormat format, const uint8_t* place) {
  switch (format) {
    case NumberFormat::kF16:
      return ExponentIsNotAllOnes<uint16_t>(place, 0x7C00);
    case NumberFormat::kBF16:
      return ExponentIsNotAllOnes<uint16_t>(place, 0x7F80);
    case NumberFormat::kF32:
      return ExponentIsNotAllOnes<uint32_t>(place, 0x7F800000);
    case NumberFormat::kF64:
      return ExponentIsNotAllOnes<uint64_t>(place, 0x7FF0000000000000);
    case NumberFormat::kE8M0:
      return *place != 0xFF;
  }
  return false;
}

}  // namespace

absl::Status CheckTensorData(DType dtype, absl::Span<const uint8_t> bytes) {
  const size_t block_bytes = static_cast<size_t>(GetDTypeInfo(dtype).block_bytes);
  if (bytes.size() % block_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are not a whole number of ", AbslView(DTypeName(dtype)),
                     " blocks of ", block_bytes));
  }
  const size_t block_count = bytes.size() / block_bytes;
  for (const CheckedField& field : kFields) {
    if (field.dtype != dtype) continue;
    for (size_t block = 0; block < block_count; ++block) {
      const size_t at = block * block_bytes + static_cast<size_t>(field.offset);
      if (IsFinite(field.format, bytes.data() + at)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "block ", block, " (byte ", at, "): ", AbslView(field.name), " is not finite"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
