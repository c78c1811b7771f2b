// The 16-bit conversions against the compiler's _Float16, exhaustively where that is possible.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/base/random.h"
#include "common/tensor/quant/reference_codec.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

uint16_t CompilerHalf(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

bool IsHalfNan(uint16_t half) { return (half & 0x7FFF) > 0x7C00; }

void ExpectSameHalf(float value) {
  const uint16_t ours = FloatToHalf(value);
  const uint16_t wanted = CompilerHalf(value);
  if (std::isnan(value)) {
    EXPECT_TRUE(IsHalfNan(ours)) << std::bit_cast<uint32_t>(value);
    EXPECT_EQ(ours & 0x8200, wanted & 0x8200) << std::bit_cast<uint32_t>(value);
  } else {
    EXPECT_EQ(ours, wanted) << value << " bits " << std::bit_cast<uint32_t>(value);
  }
}

TEST(HalfToFloat, EveryHalf_EqualsCompiler) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float ours = HalfToFloat(half);
    const float wanted = static_cast<float>(std::bit_cast<_Float16>(half));
    if (IsHalfNan(half)) {
      EXPECT_TRUE(std::isnan(ours)) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(wanted)) << bits;
    }
  }
}

TEST(FloatToHalf, EveryHalf_RoundTrips) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    // A NaN becomes quiet and keeps the rest of its payload.
    const uint16_t wanted = IsHalfNan(half) ? static_cast<uint16_t>(half | 0x0200) : half;
    EXPECT_EQ(FloatToHalf(HalfToFloat(half)), wanted) << bits;
  }
}

TEST(FloatToHalf, PointsBetweenHalves_RoundLikeCompiler) {
  // Around every midpoint of two neighbouring halves: just below, exactly at, and just above.
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = 0.5f * (low + high);  // exact
    for (const float value : {std::nextafter(middle, low), middle, std::nextafter(middle, high)}) {
      ExpectSameHalf(value);
      ExpectSameHalf(-value);
    }
  }
}

TEST(FloatToHalf, Edges_EqualCompiler) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float denormal = std::numeric_limits<float>::denorm_min();
  for (const float edge : {0.0f, denormal, std::numeric_limits<float>::min(), 0x1p-25f, 0x1.8p-25f,
                           0x1p-24f, 0x1p-14f, 0x1.FFCp-15f, 65504.0f, 65519.996f, 65520.0f,
                           65536.0f, 1e30f, std::numeric_limits<float>::max()}) {
    for (const float value :
         {std::nextafter(edge, -infinity), edge, std::nextafter(edge, infinity)}) {
      ExpectSameHalf(value);
      ExpectSameHalf(-value);
    }
  }
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(FloatToHalf(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  ExpectSameHalf(std::bit_cast<float>(0x7F800001u));
  ExpectSameHalf(std::bit_cast<float>(0xFFC12345u));
}

TEST(FloatToHalf, RandomBits_EqualCompiler) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 1000000; ++i) {
    ExpectSameHalf(std::bit_cast<float>(static_cast<uint32_t>(random.Next())));
    ExpectSameHalf(static_cast<float>(random.Normal() * std::exp2(random.Between(-30, 16))));
  }
}

TEST(BFloat16, EveryPattern_RoundTrips) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t pattern = static_cast<uint16_t>(bits);
    const float value = BFloat16ToFloat(pattern);
    EXPECT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    const uint16_t wanted = std::isnan(value) ? static_cast<uint16_t>(pattern | 0x0040) : pattern;
    EXPECT_EQ(FloatToBFloat16(value), wanted) << bits;
  }
}

TEST(BFloat16, Rounding_IsToNearestEven) {
  const auto from_bits = [](uint32_t bits) { return FloatToBFloat16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(from_bits(0x3F807FFF), 0x3F80);
  EXPECT_EQ(from_bits(0x3F808000), 0x3F80);  // tie to even
  EXPECT_EQ(from_bits(0x3F808001), 0x3F81);
  EXPECT_EQ(from_bits(0x3F818000), 0x3F82);  // tie to even
  EXPECT_EQ(from_bits(0x7F7FFFFF), 0x7F80);  // overflow to infinity
  EXPECT_EQ(from_bits(0x00008000), 0x0000);  // denormals round like the rest
  EXPECT_EQ(from_bits(0x00018000), 0x0002);
  EXPECT_EQ(from_bits(0x7F800001), 0x7FC0);  // a NaN stays one
  EXPECT_EQ(from_bits(0xFF800000), 0xFF80);
}

}  // namespace
}  // namespace weft
