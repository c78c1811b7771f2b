#include "common/metrics/histogram.h"

#include <numeric>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(HistogramTest, BoundsAreUpperAndBelongToTheirBucket) {
  SizeHistogram histogram;
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2048.0, 2049.0}) histogram.Add(value);
  EXPECT_EQ(histogram.counts[0], 2);
  EXPECT_EQ(histogram.counts[1], 2);
  EXPECT_EQ(histogram.counts.back(), 1);
  EXPECT_EQ(histogram.count, 6);
  EXPECT_DOUBLE_EQ(histogram.sum, 4102.0);
}

TEST(HistogramTest, SumsOfTwo) {
  WorkHistogram one;
  WorkHistogram two;
  one.Add(1e-5);
  two.Add(1e-5);
  two.Add(100);  // beyond the last bound
  one.Add(two);
  EXPECT_EQ(one.counts[0], 2);
  EXPECT_EQ(one.count, 3);
  EXPECT_EQ(std::accumulate(one.counts.begin(), one.counts.end(), int64_t{0}), 2);
}

TEST(HistogramTest, BoundsAscend) {
  EXPECT_TRUE(std::is_sorted(WaitBounds::kBounds.begin(), WaitBounds::kBounds.end()));
  EXPECT_TRUE(std::is_sorted(WorkBounds::kBounds.begin(), WorkBounds::kBounds.end()));
  EXPECT_TRUE(std::is_sorted(SizeBounds::kBounds.begin(), SizeBounds::kBounds.end()));
}

}  // namespace
}  // namespace weft
