#include "common/collectives/wire_format.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/random.h"
#include "common/tensor/quant/reference_codec.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::vector<float> RandomValues(Random& random, size_t count) {
  std::vector<float> values(count);
  const double scale = std::exp2(static_cast<double>(random.Between(-140, 20)));
  for (float& value : values) value = static_cast<float>(random.Normal() * scale);
  return values;
}

std::vector<float> RoundTrip(DType wire, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(static_cast<size_t>(WireBytes(wire, values.size())));
  EXPECT_OK(EncodeWire(wire, values, absl::MakeSpan(bytes)));
  std::vector<float> result(values.size(), -1);
  DecodeWire(wire, bytes, absl::MakeSpan(result));
  std::vector<float> sum(values.size(), 0);
  AddWire(wire, bytes, absl::MakeSpan(sum));
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], result[i]);
  return result;
}

TEST(WireFormat, AnyCount_AsTheReferenceCodec) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i);
    Random random(seed + i);
    const std::vector<float> values = RandomValues(random, random.Between(0, 200));
    EXPECT_EQ(RoundTrip(DType::kF32, values), values);
    for (const DType wire : {DType::kBF16, DType::kQ8_0}) {
      std::vector<float> padded = values;
      padded.resize((values.size() + 31) / 32 * 32);
      std::vector<uint8_t> row(static_cast<size_t>(WireBytes(wire, padded.size())));
      ASSERT_OK(Quantize(wire, padded, absl::MakeSpan(row)));
      ASSERT_OK(Dequantize(wire, row, absl::MakeSpan(padded)));
      padded.resize(values.size());
      EXPECT_EQ(RoundTrip(wire, values), padded);
    }
  }
}

// Ranks that hand on what they received, and ranks that keep what they rounded, agree.
TEST(WireFormat, RoundingTwice_IsRoundingOnce) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < TestCount(3000); ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i);
    Random random(seed + i);
    const std::vector<float> values = RandomValues(random, random.Between(1, 64));
    for (const DType wire : {DType::kBF16, DType::kQ8_0}) {
      const std::vector<float> once = RoundTrip(wire, values);
      const std::vector<float> twice = RoundTrip(wire, once);
      ASSERT_EQ(std::memcmp(once.data(), twice.data(), once.size() * 4), 0);
    }
  }
}

TEST(WireFormat, Bytes) {
  EXPECT_EQ(WireBytes(DType::kF32, 33), 132);
  EXPECT_EQ(WireBytes(DType::kI32, 33), 132);
  EXPECT_EQ(WireBytes(DType::kBF16, 33), 66);
  EXPECT_EQ(WireBytes(DType::kQ8_0, 0), 0);
  EXPECT_EQ(WireBytes(DType::kQ8_0, 33), 68);
  EXPECT_TRUE(IsWireType(DType::kBF16));
  EXPECT_FALSE(IsWireType(DType::kQ4_0));
}

TEST(WireFormat, Q8_WhatDoesNotFit_IsAnError) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::nanf(""), kInfinity, -kInfinity, 1e7f}) {
    std::vector<float> values(40);
    values[35] = value;
    std::vector<uint8_t> bytes(68);
    EXPECT_THAT(EncodeWire(DType::kQ8_0, values, absl::MakeSpan(bytes)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("near element 32")));
  }
}

}  // namespace
}  // namespace weft
