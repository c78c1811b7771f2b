#include "coordinator/serving/embedding_pool.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::FloatEq;

std::vector<float> Pooled(Pooling pooling) {
  EmbeddingPool pool;
  const std::vector<float> first = {3, 0, 1, 1}, second = {0, 4};
  pool.Add(first, 2, pooling);
  EXPECT_EQ(pool.tokens(), 2);
  pool.Add(second, 2, pooling);
  EXPECT_EQ(pool.tokens(), 3);
  return pool.Result();
}

TEST(EmbeddingPoolTest, Results_AreOfLengthOne) {
  const float diagonal = std::sqrt(0.5f);
  EXPECT_THAT(Pooled(Pooling::kFirst), testing::ElementsAre(FloatEq(1), FloatEq(0)));
  EXPECT_THAT(Pooled(Pooling::kLast), testing::ElementsAre(FloatEq(0), FloatEq(1)));
  const float length = std::sqrt(16.0f + 25.0f);
  EXPECT_THAT(Pooled(Pooling::kMean),
              testing::ElementsAre(FloatEq(4 / length), FloatEq(5 / length)));
  EmbeddingPool pool;
  pool.Add(std::vector<float>{0, 0}, 2, Pooling::kMean);
  EXPECT_THAT(pool.Result(), testing::ElementsAre(0, 0));
  pool.Reset();
  pool.Add(std::vector<float>{-2, 2}, 2, Pooling::kMean);
  EXPECT_THAT(pool.Result(), testing::ElementsAre(FloatEq(-diagonal), FloatEq(diagonal)));
}

}  // namespace
}  // namespace weft
