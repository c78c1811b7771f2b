// Checks sizes and walks rows; the formats themselves are in simple_blocks, k_blocks and iq_blocks.
#include "common/tensor/quant/reference_codec.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/tensor/quant/block_codec.h"

namespace weft {
namespace {

template <typename Block>
void DecodeRow(absl::Span<const uint8_t> row, absl::Span<float> values) {
  const auto* blocks = reinterpret_cast<const Block*>(row.data());
  const size_t block_count = row.size() / sizeof(Block);
  for (size_t i = 0; i < block_count; ++i) {
    DecodeBlock(blocks[i], values.data() + i * kBlockElements<Block>);
  }
}

void DecodeHalves(absl::Span<const uint8_t> row, float (*convert)(uint16_t),
                  absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, row.data() + 2 * i, sizeof(bits));
    values[i] = convert(bits);
  }
}

absl::Status CheckSizes(DType dtype, size_t element_count, size_t row_bytes) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  if (!info.codec)
    return absl::UnimplementedError(absl::StrCat("no codec for type ", AbslView(info.name)));
  const std::optional<int64_t> wanted = RowBytes(dtype, static_cast<int64_t>(element_count));
  if (!wanted.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(element_count, " elements are not a multiple of the ", info.block_elements,
                     " of a block of ", AbslView(info.name)));
  }
  if (static_cast<uint64_t>(*wanted) != row_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a row of ", element_count, " elements of ",
                                                   AbslView(info.name), " has ", *wanted,
                                                   " bytes, not ", row_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Dequantize(DType dtype, absl::Span<const uint8_t> row, absl::Span<float> values) {
  if (absl::Status status = CheckSizes(dtype, values.size(), row.size()); !status.ok())
    return status;
  switch (dtype) {
    case DType::kF32:
      if (!row.empty()) std::memcpy(values.data(), row.data(), row.size());
      break;
    case DType::kF16:
      DecodeHalves(row, HalfToFloat, values);
      break;
    case DType::kBF16:
      DecodeHalves(row, BFloat16ToFloat, values);
      break;
    case DType::kQ4_0:
      DecodeRow<BlockQ4_0>(row, values);
      break;
    case DType::kQ4_1:
      DecodeRow<BlockQ4_1>(row, values);
      break;
    case DType::kQ5_0:
      DecodeRow<BlockQ5_0>(row, values);
      break;
    case DType::kQ5_1:
      DecodeRow<BlockQ5_1>(row, values);
      break;
    case DType::kQ8_0:
      DecodeRow<BlockQ8_0>(row, values);
      break;
    case DType::kQ2_K:
      DecodeRow<BlockQ2_K>(row, values);
      break;
    case DType::kQ3_K:
      DecodeRow<BlockQ3_K>(row, values);
      break;
    case DType::kQ4_K:
      DecodeRow<BlockQ4_K>(row, values);
      break;
    case DType::kQ5_K:
      DecodeRow<BlockQ5_K>(row, values);
      break;
    case DType::kQ6_K:
      DecodeRow<BlockQ6_K>(row, values);
      break;
    case DType::kIQ4_NL:
      DecodeRow<BlockIQ4_NL>(row, values);
      break;
    case DType::kIQ4_XS:
      DecodeRow<BlockIQ4_XS>(row, values);
      break;
    case DType::kMXFP4:
      DecodeRow<BlockMXFP4>(row, values);
      break;
    default:
      return absl::UnimplementedError(
          absl::StrCat("no codec for type ", AbslView(DTypeName(dtype))));
  }
  return absl::OkStatus();
}

}  // namespace weft
