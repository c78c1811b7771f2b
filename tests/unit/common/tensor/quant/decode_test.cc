// Dequantising against the plain formulas (spec INV-H3) and the worked values of spec M.4.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/tensor/quant/block_formulas.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<DType> QuantizedTypes() {
  std::vector<DType> types;
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.codec && info.quantized) types.push_back(info.dtype);
  }
  return types;
}

void ExpectFormulaValues(DType dtype, absl::Span<const uint8_t> row) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  const size_t block_count = row.size() / static_cast<size_t>(info.block_bytes);
  std::vector<float> values(block_count * static_cast<size_t>(info.block_elements));
  ASSERT_OK(Dequantize(dtype, row, absl::MakeSpan(values)));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t block = i / static_cast<size_t>(info.block_elements);
    const float wanted =
        FormulaValue(dtype, row.data() + block * static_cast<size_t>(info.block_bytes),
                     static_cast<int>(i % static_cast<size_t>(info.block_elements)));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(wanted))
          << "element " << i << ": " << values[i] << " want " << wanted;
    }
  }
}

class EveryBlockType : public testing::TestWithParam<DType> {};

TEST_P(EveryBlockType, RandomBlocks_EqualFormula) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  std::vector<uint8_t> row(64 * static_cast<size_t>(GetDTypeInfo(GetParam()).block_bytes));
  for (uint8_t& byte : row) byte = static_cast<uint8_t>(random.Next());
  ExpectFormulaValues(GetParam(), row);
}

TEST_P(EveryBlockType, ConstantBytes_EqualFormula) {
  const size_t block_bytes = static_cast<size_t>(GetDTypeInfo(GetParam()).block_bytes);
  for (const int byte : {0x00, 0x01, 0x55, 0x7B, 0x80, 0xAA, 0xFB, 0xFF}) {
    SCOPED_TRACE(testing::Message() << "byte " << byte);
    const std::vector<uint8_t> row(2 * block_bytes, static_cast<uint8_t>(byte));
    ExpectFormulaValues(GetParam(), row);
  }
}

TEST_P(EveryBlockType, OnesWithFiniteScales_EqualFormula) {
  // All codes and scales at their largest, under scales that are numbers.
  const DTypeInfo& info = GetDTypeInfo(GetParam());
  std::vector<uint8_t> row(static_cast<size_t>(info.block_bytes), 0xFF);
  const uint16_t half = 0x7BFF;  // the largest
  const size_t end = row.size();
  switch (GetParam()) {
    case DType::kMXFP4:
      row[0] = 254;
      break;
    case DType::kQ3_K:
    case DType::kQ6_K:
      std::memcpy(&row[end - 2], &half, 2);
      break;
    case DType::kQ2_K:
      std::memcpy(&row[end - 4], &half, 2);
      std::memcpy(&row[end - 2], &half, 2);
      break;
    default:
      std::memcpy(&row[0], &half, 2);
      std::memcpy(&row[2], &half, 2);  // m or dmin where there is one
  }
  ExpectFormulaValues(GetParam(), row);
}

TEST_P(EveryBlockType, MisalignedRow_EqualsAligned) {
  Random random(3);
  const DTypeInfo& info = GetDTypeInfo(GetParam());
  const size_t bytes = 3 * static_cast<size_t>(info.block_bytes);
  std::vector<uint8_t> row(bytes + 8);
  for (uint8_t& byte : row) byte = static_cast<uint8_t>(random.Next() & 0x3F);
  const std::vector<uint8_t> original(row.begin(), row.begin() + static_cast<ptrdiff_t>(bytes));
  std::vector<float> wanted(3 * static_cast<size_t>(info.block_elements));
  ASSERT_OK(Dequantize(GetParam(), original, absl::MakeSpan(wanted)));
  for (size_t shift = 1; shift < 8; ++shift) {
    std::memmove(row.data() + shift, original.data(), bytes);
    std::vector<float> values(wanted.size());
    ASSERT_OK(
        Dequantize(GetParam(), absl::MakeSpan(row).subspan(shift, bytes), absl::MakeSpan(values)));
    EXPECT_EQ(values, wanted) << "shift " << shift;
  }
}

TEST_P(EveryBlockType, WrongSizes_AreErrors) {
  const DTypeInfo& info = GetDTypeInfo(GetParam());
  const std::vector<uint8_t> row(2 * static_cast<size_t>(info.block_bytes));
  std::vector<float> values(2 * static_cast<size_t>(info.block_elements));
  const auto decode = [&](size_t bytes, size_t elements) {
    return Dequantize(GetParam(), absl::MakeSpan(row).first(bytes),
                      absl::MakeSpan(values).first(elements));
  };
  EXPECT_OK(decode(row.size(), values.size()));
  EXPECT_OK(decode(0, 0));
  EXPECT_THAT(decode(row.size() - 1, values.size()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes, not")));
  EXPECT_THAT(decode(row.size() / 2, values.size()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes, not")));
  EXPECT_THAT(decode(row.size(), values.size() - 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a multiple")));
}

INSTANTIATE_TEST_SUITE_P(Codec, EveryBlockType, testing::ValuesIn(QuantizedTypes()),
                         [](const testing::TestParamInfo<DType>& type) {
                           return std::string(DTypeName(type.param));
                         });

// Spec M.4.
constexpr uint8_t kScaleBytes[12] = {0x3f, 0x80, 0xc1, 0x42, 0x15, 0x6a,
                                     0xbf, 0xff, 0x12, 0x34, 0x56, 0x78};
constexpr int kScaleMins[8][2] = {{63, 21}, {0, 42},  {1, 63},  {2, 63},
                                  {2, 1},   {36, 19}, {54, 37}, {24, 55}};
constexpr int kQ3Scales[16] = {15, -32, 1, -30, -27, -6, -1, 15, -13, 24, -4, 20, -31, -26, -5, -1};

TEST(WorkedValues, ScaleMins) {
  std::array<ScaleMin, 8> pairs;
  for (int i = 0; i < 8; ++i) {
    pairs[i] = UnpackScaleMin(kScaleBytes, i);
    EXPECT_EQ(pairs[i].scale, kScaleMins[i][0]) << i;
    EXPECT_EQ(pairs[i].minimum, kScaleMins[i][1]) << i;
  }
  uint8_t packed[12];
  PackScaleMins(pairs, packed);
  EXPECT_EQ(std::memcmp(packed, kScaleBytes, 12), 0);
}

TEST(WorkedValues, Q3Scales) {
  std::array<int, 16> scales;
  for (int i = 0; i < 16; ++i) {
    scales[i] = UnpackQ3Scale(kScaleBytes, i);
    EXPECT_EQ(scales[i], kQ3Scales[i]) << i;
  }
  uint8_t packed[12];
  PackQ3Scales(scales, packed);
  EXPECT_EQ(std::memcmp(packed, kScaleBytes, 12), 0);
}

float Mxfp4Value(uint8_t e, uint8_t code) {
  std::vector<uint8_t> row(17, 0);
  row[0] = e;
  row[1] = code;
  std::vector<float> values(32);
  EXPECT_OK(Dequantize(DType::kMXFP4, row, absl::MakeSpan(values)));
  return values[0];
}

TEST(WorkedValues, Mxfp4Exponents) {
  EXPECT_EQ(Mxfp4Value(0, 5), 1.7632415e-38f);
  EXPECT_EQ(Mxfp4Value(1, 5), 3.5264831e-38f);
  EXPECT_EQ(Mxfp4Value(127, 5), 3.0f);
  EXPECT_EQ(Mxfp4Value(130, 5), 24.0f);
  EXPECT_EQ(Mxfp4Value(130, 13), -24.0f);
  EXPECT_EQ(Mxfp4Value(0, 1), 0x1p-128f);  // a denormal
  EXPECT_EQ(Mxfp4Value(254, 2), 0x1p127f);
  EXPECT_TRUE(std::isinf(Mxfp4Value(254, 7)));  // 6 * 2^127 is beyond F32
  EXPECT_TRUE(std::isnan(Mxfp4Value(255, 5)));
  EXPECT_EQ(std::bit_cast<uint32_t>(Mxfp4Value(127, 8)), 0u);  // both zero codes give +0
}

TEST(Dequantize, PlainTypes_KeepBits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> source = {0.0f, -0.0f, 1.5f, -infinity, 1e-45f};
  std::vector<uint8_t> row(20);
  ASSERT_OK(Quantize(DType::kF32, source, absl::MakeSpan(row)));
  std::vector<float> values(5);
  ASSERT_OK(Dequantize(DType::kF32, row, absl::MakeSpan(values)));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(source[i])) << i;
  }
  const std::vector<uint8_t> halves = {0x00, 0x3C, 0x01, 0x00, 0x00, 0xFC};
  values.resize(3);
  ASSERT_OK(Dequantize(DType::kF16, halves, absl::MakeSpan(values)));
  EXPECT_THAT(values, ElementsAre(1.0f, 0x1p-24f, -infinity));
  EXPECT_THAT(Dequantize(DType::kF16, absl::MakeSpan(halves).first(5), absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("6 bytes, not 5")));
}

TEST(Dequantize, TypeWithoutCodec_IsUnimplemented) {
  const std::vector<uint8_t> row(54);
  std::vector<float> values(256);
  EXPECT_THAT(Dequantize(DType::kTQ1_0, row, absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("TQ1_0")));
  std::vector<uint8_t> out(54);
  EXPECT_THAT(Quantize(DType::kTQ1_0, values, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("TQ1_0")));
}

}  // namespace
}  // namespace weft
