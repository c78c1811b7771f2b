// Quantising beyond the golden matrix: special blocks, invariants of the search, and refusals.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/quant/reference_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::Each;
using testing::HasSubstr;

// A bound for the squared error of normally distributed values, as a share of their sum of
// squares: 1.1 times what the search reaches.
struct Quality {
  DType dtype;
  double nmse;
};
constexpr Quality kQualities[] = {
    {DType::kQ4_0, 0.0082},   {DType::kQ4_1, 0.0068}, {DType::kQ5_0, 0.0021},
    {DType::kQ5_1, 0.0016},   {DType::kQ8_0, 3.2e-5}, {DType::kMXFP4, 0.0145},
    {DType::kQ2_K, 0.075},    {DType::kQ3_K, 0.0227}, {DType::kQ4_K, 0.0054},
    {DType::kQ5_K, 0.0013},   {DType::kQ6_K, 3.1e-4}, {DType::kIQ4_NL, 0.0059},
    {DType::kIQ4_XS, 0.0060},
};

std::vector<float> RoundTrip(DType dtype, const std::vector<float>& source) {
  std::vector<uint8_t> row(
      static_cast<size_t>(*RowBytes(dtype, static_cast<int64_t>(source.size()))),
      0xEE);  // nothing may depend on what was there
  EXPECT_OK(Quantize(dtype, source, absl::MakeSpan(row)));
  std::vector<float> values(source.size());
  EXPECT_OK(Dequantize(dtype, row, absl::MakeSpan(values)));
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }));
  return values;
}

class EveryQuantizer : public testing::TestWithParam<Quality> {
 protected:
  DType dtype() const { return GetParam().dtype; }
};

TEST_P(EveryQuantizer, NormalValues_ErrorWithinBound) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (const double deviation : {0.02, 1.0, 300.0}) {
    std::vector<float> source(64 * 256);
    for (float& value : source) value = static_cast<float>(random.Normal() * deviation);
    // An exponent of MXFP4 fits some deviations better than others.
    const double slack = dtype() == DType::kMXFP4 ? 1.2 : 1.0;
    EXPECT_LE(NormalizedError(RoundTrip(dtype(), source), source), slack * GetParam().nmse)
        << "deviation " << deviation;
  }
}

TEST_P(EveryQuantizer, Zeros_StayZero) {
  EXPECT_THAT(RoundTrip(dtype(), std::vector<float>(512, 0.0f)), Each(0.0f));
  EXPECT_THAT(RoundTrip(dtype(), std::vector<float>(512, -0.0f)), Each(0.0f));
}

TEST_P(EveryQuantizer, OneBlockOfZerosBetweenOthers_StaysZero) {
  const auto elements = static_cast<size_t>(GetDTypeInfo(dtype()).block_elements);
  Random random(8);
  std::vector<float> source(3 * elements);
  for (float& value : source) value = static_cast<float>(random.Normal());
  std::fill_n(source.begin() + static_cast<ptrdiff_t>(elements), elements, 0.0f);
  const std::vector<float> values = RoundTrip(dtype(), source);
  for (size_t i = 0; i < elements; ++i) EXPECT_EQ(values[elements + i], 0.0f);
  EXPECT_GT(std::fabs(values[0]), 0.0f);
}

TEST_P(EveryQuantizer, Denormals_NeverGrow) {
  Random random(9);
  std::vector<float> source(512);
  for (float& value : source) value = static_cast<float>(random.Normal() * 1e-41);
  // The smallest scale of an F16 is 6e-8, so that these become zero, but for MXFP4, which has steps
  // of 2^-128.
  for (const float value : RoundTrip(dtype(), source)) EXPECT_LE(std::fabs(value), 0x1p-126f);
}

TEST_P(EveryQuantizer, TinyValues_KeepFinite) {
  Random random(10);
  for (const double deviation : {1e-4, 1e-6, 1e-7, 1e-8, 1e-10, 1e-20}) {
    std::vector<float> source(512);
    for (float& value : source) value = static_cast<float>(random.Normal() * deviation);
    const std::vector<float> values = RoundTrip(dtype(), source);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(std::isfinite(values[i]));
      EXPECT_LE(std::fabs(values[i] - source[i]), 8 * deviation) << deviation;
    }
  }
}

TEST_P(EveryQuantizer, ConstantBlocks_AreClose) {
  for (const float constant : {1.0f, -1.0f, 0.03f, -500.0f}) {
    const std::vector<float> values = RoundTrip(dtype(), std::vector<float>(512, constant));
    for (const float value : values) EXPECT_NEAR(value, constant, 0.26f * std::fabs(constant));
  }
}

TEST_P(EveryQuantizer, RepeatedQuantizing_IsStable) {
  // What a quantiser wrote, it should find again, or something as good.
  Random random(12);
  std::vector<float> source(1024);
  for (float& value : source) value = static_cast<float>(random.Normal());
  const std::vector<float> once = RoundTrip(dtype(), source);
  EXPECT_LE(NormalizedError(RoundTrip(dtype(), once), once), GetParam().nmse);
}

TEST_P(EveryQuantizer, MisalignedRow_SameBytes) {
  Random random(13);
  std::vector<float> source(512);
  for (float& value : source) value = static_cast<float>(random.Normal());
  const auto bytes = static_cast<size_t>(*RowBytes(dtype(), 512));
  std::vector<uint8_t> row(bytes);
  ASSERT_OK(Quantize(dtype(), source, absl::MakeSpan(row)));
  std::vector<uint8_t> shifted(bytes + 3, 0xAB);
  ASSERT_OK(Quantize(dtype(), source, absl::MakeSpan(shifted).subspan(1, bytes)));
  EXPECT_EQ(std::memcmp(shifted.data() + 1, row.data(), bytes), 0);
  EXPECT_EQ(shifted.front(), 0xAB);
  EXPECT_EQ(shifted[bytes + 1], 0xAB);
}

TEST_P(EveryQuantizer, NonFiniteValue_IsRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> source(512, 1.0f);
    source[300] = bad;
    std::vector<uint8_t> row(static_cast<size_t>(*RowBytes(dtype(), 512)));
    EXPECT_THAT(Quantize(dtype(), source, absl::MakeSpan(row)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element 300")));
  }
}

TEST_P(EveryQuantizer, ValueBeyondScale_IsRefusedOrExact) {
  for (const float magnitude : {1e12f, 1e30f, std::numeric_limits<float>::max()}) {
    std::vector<float> source(512, 0.5f);
    source[256] = -magnitude;
    std::vector<uint8_t> row(static_cast<size_t>(*RowBytes(dtype(), 512)));
    const absl::Status status = Quantize(dtype(), source, absl::MakeSpan(row));
    if (dtype() == DType::kMXFP4) {
      EXPECT_OK(status);  // its exponents are those of F32
      EXPECT_NE(row[17 * 8], 255);
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
    }
  }
}

TEST_P(EveryQuantizer, WrongSizes_AreRefused) {
  const std::vector<float> source(512, 1.0f);
  std::vector<uint8_t> row(static_cast<size_t>(*RowBytes(dtype(), 512)));
  EXPECT_THAT(Quantize(dtype(), source, absl::MakeSpan(row).first(row.size() - 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes, not")));
  EXPECT_THAT(Quantize(dtype(), absl::MakeSpan(source).first(500), absl::MakeSpan(row)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a multiple")));
  EXPECT_OK(Quantize(dtype(), absl::MakeSpan(source).first(0), absl::MakeSpan(row).first(0)));
}

INSTANTIATE_TEST_SUITE_P(Codec, EveryQuantizer, testing::ValuesIn(kQualities),
                         [](const testing::TestParamInfo<Quality>& row) {
                           return std::string(DTypeName(row.param.dtype));
                         });

TEST(Quantize, QualityTable_CoversEveryBlockType) {
  size_t count = 0;
  for (const DTypeInfo& info : AllDTypes()) count += info.codec && info.quantized ? 1 : 0;
  EXPECT_EQ(std::size(kQualities), count);
}

// Spec M.4: Q8_0 of -1.6, -1.5, ..., 1.5.
TEST(Quantize, Q8_0WorkedValues) {
  std::vector<float> source;
  for (int i = -16; i < 16; ++i) source.push_back(static_cast<float>(i) / 10.0f);
  std::vector<uint8_t> row(34);
  ASSERT_OK(Quantize(DType::kQ8_0, source, absl::MakeSpan(row)));
  EXPECT_EQ(row[0], 0x73);
  EXPECT_EQ(row[1], 0x22);
  const auto code = [&](size_t i) { return static_cast<int>(static_cast<int8_t>(row[2 + i])); };
  EXPECT_EQ(code(0), -127);
  EXPECT_EQ(code(1), -119);
  EXPECT_EQ(code(2), -111);
  EXPECT_EQ(code(3), -103);
  EXPECT_EQ(code(16), 0);
  EXPECT_EQ(code(31), 119);
}

// Spec H.5: the first element of largest magnitude decides the sign of the scale.
TEST(Quantize, Q4_0Extreme_FirstWins) {
  std::vector<float> source(32, 0.0f);
  source[3] = 4.0f;
  source[5] = -4.0f;
  std::vector<uint8_t> row(18);
  ASSERT_OK(Quantize(DType::kQ4_0, source, absl::MakeSpan(row)));
  std::vector<float> values(32);
  ASSERT_OK(Dequantize(DType::kQ4_0, row, absl::MakeSpan(values)));
  EXPECT_EQ(values[3], 4.0f);   // code 0
  EXPECT_EQ(values[5], -3.5f);  // code 15, as there is no 16
}

TEST(Quantize, HalfPrecisionTypes_PassNonFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> source = {infinity, 1e30f};
  std::vector<uint8_t> row(4);
  ASSERT_OK(Quantize(DType::kF16, source, absl::MakeSpan(row)));
  EXPECT_THAT(row, testing::ElementsAre(0x00, 0x7C, 0x00, 0x7C));
  ASSERT_OK(Quantize(DType::kBF16, source, absl::MakeSpan(row)));
  EXPECT_EQ(row[1], 0x7F);
}

}  // namespace
}  // namespace weft
