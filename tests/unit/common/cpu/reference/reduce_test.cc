#include <cmath>
#include <limits>

#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ReduceTest, RmsNorm_WithWeight_DividesByRootMeanSquare) {
  OneOp op;
  const NodeId x = op.F32({2, 2}, {3, 4, 0, 0});
  const NodeId weight = op.F32({2}, {1, 2});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.RmsNorm(x, weight, 0.5f)));
  const double root = std::sqrt(12.5 + 0.5);
  ExpectNear(y, {3 / root, 8 / root, 0, 0}, 1e-6);
}

TEST(ReduceTest, Norm_SubtractsMeanAndDividesByDeviation) {
  OneOp op;
  const NodeId x = op.F32({4}, {1, 2, 3, 6});
  const NodeId weight = op.F32({4}, {1, 1, 1, 10});
  const NodeId y = op.builder.Make(Op::kNorm, NormAttributes{0.25f}, {x, weight});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  const double root = std::sqrt(3.5 + 0.25);
  ExpectNear(values, {-2 / root, -1 / root, 0, 30 / root}, 1e-6);
}

TEST(ReduceTest, L2Norm_EpsilonIsAFloorOfTheLength) {
  OneOp op;
  const NodeId x = op.F32({2, 2}, {3, 4, 0.3f, 0.4f});
  const NodeId y = op.builder.Make(Op::kL2Norm, NormAttributes{1.0f}, {x});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  ExpectNear(values, {.6, .8, .3, .4}, 1e-6);
}

// Spec M.5.
TEST(ReduceTest, SoftMax_WorkedValues) {
  OneOp op;
  const NodeId x = op.F32({4}, {1, 3, 2, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.SoftMax(x)));
  ExpectNear(y, {.0871443, .6439143, .2368828, .0320586}, 1e-6);
}

TEST(ReduceTest, SoftMax_MaskedElementsAndRows_GiveZeros) {
  OneOp op;
  const NodeId x = op.F32({2, 2}, {1, -kInfinity, -kInfinity, -kInfinity});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.SoftMax(x, 2)));
  EXPECT_THAT(y, ElementsAre(1, 0, 0, 0));
}

TEST(ReduceTest, Sums_AlongRows) {
  OneOp op;
  const NodeId x = op.F32({3, 2}, {1, 2, 3, -4, 5, 1});
  const NodeId mean = op.builder.Make(Op::kMean, {}, {x});
  const NodeId running = op.builder.Make(Op::kCumSum, {}, {x});
  const NodeId best = op.builder.Make(Op::kArgMax, {}, {x});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.SumRows(x)));
  EXPECT_THAT(y, ElementsAre(6, 2));
  ExpectNear(op.host().F32(mean), {2, 2.0 / 3}, 1e-6);
  EXPECT_THAT(op.host().F32(running), ElementsAre(1, 3, 6, -4, 1, 2));
  EXPECT_THAT(op.host().I32(best), ElementsAre(2, 1));
}

TEST(ReduceTest, ArgMax_Tie_TakesTheLowerIndex) {
  OneOp op;
  const NodeId best = op.builder.Make(Op::kArgMax, {}, {op.F32({4}, {1, 7, 7, 0})});
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> y, op.RunI32(best));
  EXPECT_THAT(y, ElementsAre(1));
}

TEST(ReduceTest, TopK_DescendingTiesToTheLowerIndexPaddingToNoExpert) {
  OneOp op;
  const NodeId x = op.F32({4, 3}, {1, 3, 2, 0, 5, 5, 1, 5, 9, 8, 7, 6});
  const NodeId positions = op.I32({3}, {4, 0, -1});
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> y, op.RunI32(op.builder.TopK(x, 2, positions)));
  EXPECT_THAT(y, ElementsAre(1, 2, 0, 1, -1, -1));
}

TEST(ReduceTest, TopK_NaN_CountsAsTheLeastValue) {
  OneOp op;
  const NodeId x = op.F32({3}, {std::numeric_limits<float>::quiet_NaN(), -2, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> y, op.RunI32(op.builder.TopK(x, 3, kNoNode)));
  EXPECT_THAT(y, ElementsAre(2, 1, 0));
}

}  // namespace
}  // namespace weft
