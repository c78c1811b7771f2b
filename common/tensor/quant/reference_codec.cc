// Checks sizes and walks rows; the formats themselves are in simple_blocks, k_blocks and iq_blocks.
#include "common/tensor/quant/reference_codec.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/scale_search.h"

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

// `block_index` counts from the start of the row.
absl::Status RangeError(DType dtype, size_t block_index) {
  return absl::InvalidArgumentError(absl::StrCat("values of block ", block_index,
                                                 " are too large for a scale of ",
                                                 AbslView(DTypeName(dtype))));
}

template <typename Block>
absl::Status EncodeRow(DType dtype, absl::Span<const float> values, absl::Span<uint8_t> row) {
  auto* blocks = reinterpret_cast<Block*>(row.data());
  const size_t block_count = row.size() / sizeof(Block);
  for (size_t i = 0; i < block_count; ++i) {
    const float* first = values.data() + i * kBlockElements<Block>;
    // MXFP4 has the exponents of F32, so nothing is too large for it.
    if constexpr (!std::is_same_v<Block, BlockMXFP4>) {
      for (int j = 0; j < kBlockElements<Block>; ++j) {
        if (std::fabs(first[j]) > kLargestInput) return RangeError(dtype, i);
      }
    }
    if (!EncodeBlock(first, blocks[i])) return RangeError(dtype, i);
  }
  return absl::OkStatus();
}

void EncodeHalves(absl::Span<const float> values, uint16_t (*convert)(float),
                  absl::Span<uint8_t> row) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = convert(values[i]);
    std::memcpy(row.data() + 2 * i, &bits, sizeof(bits));
  }
}

absl::Status CheckFinite(DType dtype, absl::Span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", values[i], ", which ",
                                                     AbslView(DTypeName(dtype)), " cannot hold"));
    }
  }
  return absl::OkStatus();
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

// Calls `visitor` with a std::type_identity of the block struct of `dtype`.
template <typename Visitor>
absl::Status VisitBlockType(DType dtype, const Visitor& visitor) {
  switch (dtype) {
    case DType::kQ4_0:
      return visitor(std::type_identity<BlockQ4_0>());
    case DType::kQ4_1:
      return visitor(std::type_identity<BlockQ4_1>());
    case DType::kQ5_0:
      return visitor(std::type_identity<BlockQ5_0>());
    case DType::kQ5_1:
      return visitor(std::type_identity<BlockQ5_1>());
    case DType::kQ8_0:
      return visitor(std::type_identity<BlockQ8_0>());
    case DType::kQ2_K:
      return visitor(std::type_identity<BlockQ2_K>());
    case DType::kQ3_K:
      return visitor(std::type_identity<BlockQ3_K>());
    case DType::kQ4_K:
      return visitor(std::type_identity<BlockQ4_K>());
    case DType::kQ5_K:
      return visitor(std::type_identity<BlockQ5_K>());
    case DType::kQ6_K:
      return visitor(std::type_identity<BlockQ6_K>());
    case DType::kIQ4_NL:
      return visitor(std::type_identity<BlockIQ4_NL>());
    case DType::kIQ4_XS:
      return visitor(std::type_identity<BlockIQ4_XS>());
    case DType::kMXFP4:
      return visitor(std::type_identity<BlockMXFP4>());
    default:
      return absl::UnimplementedError(
          absl::StrCat("no codec for type ", AbslView(DTypeName(dtype))));
  }
}

}  // namespace

absl::Status Dequantize(DType dtype, absl::Span<const uint8_t> row, absl::Span<float> values) {
  RETURN_IF_ERROR(CheckSizes(dtype, values.size(), row.size()));
  if (values.empty()) return absl::OkStatus();
  if (dtype == DType::kF32) {
    std::memcpy(values.data(), row.data(), row.size());
    return absl::OkStatus();
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    DecodeHalves(row, dtype == DType::kF16 ? HalfToFloat : BFloat16ToFloat, values);
    return absl::OkStatus();
  }
  return VisitBlockType(dtype, [&]<typename Block>(std::type_identity<Block>) {
    DecodeRow<Block>(row, values);
    return absl::OkStatus();
  });
}

absl::Status Quantize(DType dtype, absl::Span<const float> values, absl::Span<uint8_t> row) {
  RETURN_IF_ERROR(CheckSizes(dtype, values.size(), row.size()));
  if (values.empty()) return absl::OkStatus();
  if (dtype == DType::kF32) {
    std::memcpy(row.data(), values.data(), row.size());
    return absl::OkStatus();
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    EncodeHalves(values, dtype == DType::kF16 ? FloatToHalf : FloatToBFloat16, row);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckFinite(dtype, values));
  return VisitBlockType(dtype, [&]<typename Block>(std::type_identity<Block>) {
    return EncodeRow<Block>(dtype, values, row);
  });
}

}  // namespace weft
