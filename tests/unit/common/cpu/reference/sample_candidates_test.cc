#include <cmath>
#include <limits>

#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Header: candidates, NaNs, first NaN, rest, its maximum and sum of exponentials.
TEST(SampleCandidates, BestUnchangedIds_TiesToTheLowerId_AndASummaryOfTheRest) {
  OneOp op;
  const NodeId x = op.F32({6}, {1, 9, 3, 3, 2, 3});
  const NodeId changed = op.I32({3}, {1, -1, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y,
                       op.Run(op.builder.SampleCandidates(x, changed, 2)));
  EXPECT_THAT(y, ElementsAre(2, 0, -1, 2, 3, FloatNear(1 + std::exp(-1.0f), 1e-6f),  //
                             2, 3, 3, 3, 9, 0, 1));
}

TEST(SampleCandidates, PartOfAVocabulary_CountsFromItsFirstId) {
  OneOp op;
  const NodeId x = op.F32({3}, {5, 7, 6});
  const NodeId changed = op.I32({4}, {9, 100, 103, 102});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y,
                       op.Run(op.builder.SampleCandidates(x, changed, 3, 100)));
  // One unchanged id is left, so there is no rest.
  EXPECT_THAT(y, ElementsAre(1, 0, -1, 0, 0, 0, 101, -1, -1, 7, 0, 0, 0, 5, 0, 6));
}

TEST(SampleCandidates, NaN_IsCountedAndNothingElseIsSaid) {
  OneOp op;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const NodeId x = op.F32({3, 2}, {1, nan, nan, 1, 2, 3});
  const NodeId changed = op.I32({1, 2}, {40, 42});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y,
                       op.Run(op.builder.SampleCandidates(x, changed, 1, 40)));
  EXPECT_THAT(y, ElementsAre(0, 2, 41, 0, 0, 0, -1, 0, 0,  //
                             1, 0, -1, 1, 1, 1, 41, 2, 3));
}

TEST(SampleCandidates, InfiniteRest_HasNoSum) {
  OneOp op;
  const NodeId x = op.F32({3, 2}, {0, -kInfinity, -kInfinity, kInfinity, kInfinity, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y,
                       op.Run(op.builder.SampleCandidates(x, kNoNode, 1)));
  EXPECT_THAT(y, ElementsAre(1, 0, -1, 2, -kInfinity, 0, 0, 0,  //
                             1, 0, -1, 2, kInfinity, 0, 0, kInfinity));
}

}  // namespace
}  // namespace weft
