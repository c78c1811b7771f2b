#include "common/base/checked_math.h"

#include <limits>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(CheckedMath, Add_ReportsOverflowAtBothEnds) {
  EXPECT_EQ(CheckedAdd(2, 3), 5);
  EXPECT_EQ(CheckedAdd(kMax, 0), kMax);
  EXPECT_EQ(CheckedAdd(kMax, kMin), -1);
  EXPECT_FALSE(CheckedAdd(kMax, 1).has_value());
  EXPECT_FALSE(CheckedAdd(kMin, -1).has_value());
}

TEST(CheckedMath, Multiply_ReportsOverflowAtBothEnds) {
  EXPECT_EQ(CheckedMultiply(-2, 3), -6);
  EXPECT_EQ(CheckedMultiply(kMax, 1), kMax);
  EXPECT_EQ(CheckedMultiply(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_FALSE(CheckedMultiply(int64_t{1} << 32, int64_t{1} << 31).has_value());
  EXPECT_FALSE(CheckedMultiply(kMin, -1).has_value());
}

TEST(CheckedMath, AlignUp_IsTheNextMultiple) {
  for (int64_t alignment : {1, 3, 8, 32, 4096}) {
    for (int64_t value = 0; value < 100; ++value) {
      const int64_t aligned = AlignUp(value, alignment);
      EXPECT_EQ(aligned % alignment, 0);
      EXPECT_GE(aligned, value);
      EXPECT_LT(aligned, value + alignment);
      EXPECT_EQ(CheckedAlignUp(value, alignment), aligned);
      EXPECT_EQ(CeilDivide(value, alignment), aligned / alignment);
    }
  }
  EXPECT_EQ(CheckedAlignUp(kMax - 31, 32), kMax - 31);
  EXPECT_FALSE(CheckedAlignUp(kMax - 30, 32).has_value());
}

TEST(CheckedMath, IsPowerOfTwo_OnlyForPowers) {
  for (int i = 0; i < 63; ++i) EXPECT_TRUE(IsPowerOfTwo(int64_t{1} << i));
  for (int64_t other :
       {int64_t{0}, int64_t{-1}, int64_t{-8}, int64_t{3}, int64_t{48}, kMin, kMax}) {
    EXPECT_FALSE(IsPowerOfTwo(other)) << other;
  }
}

}  // namespace
}  // namespace weft
