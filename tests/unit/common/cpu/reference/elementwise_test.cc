#include <cmath>

#include "common/base/random.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ElementwiseTest, Binary_Broadcast_RepeatsTheSecondByModulo) {
  OneOp op;
  const NodeId a = op.F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const NodeId b = op.F32({2, 1}, {10, 20});
  const NodeId sum = op.builder.Add(a, b);
  const NodeId difference = op.builder.Sub(a, b);
  const NodeId product = op.builder.Mul(a, b);
  const NodeId quotient = op.builder.Div(a, b);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(sum));
  EXPECT_THAT(y, ElementsAre(11, 22, 13, 24, 15, 26, 17, 28));
  EXPECT_THAT(op.host().F32(difference), ElementsAre(-9, -18, -7, -16, -5, -14, -3, -12));
  EXPECT_THAT(op.host().F32(product), ElementsAre(10, 40, 30, 80, 50, 120, 70, 160));
  ExpectNear(op.host().F32(quotient), {.1, .1, .3, .2, .5, .3, .7, .4}, 1e-7);
}

TEST(ElementwiseTest, Binary_PermutedSource_FollowsStrides) {
  OneOp op;
  const NodeId a = op.F32({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const NodeId swapped = op.builder.Permute(a, {0, 2, 1, 3});  // [2, 3, 2]
  const NodeId zero = op.F32({1}, {0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.Add(swapped, zero)));
  EXPECT_THAT(y, ElementsAre(0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11));
}

TEST(ElementwiseTest, AddId_NegativeId_AddsNothing) {
  OneOp op;
  const NodeId x = op.F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const NodeId bias = op.F32({2, 3}, {10, 20, 30, 40, 50, 60});
  const NodeId ids = op.I32({2, 2}, {2, 0, -1, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.AddId(x, bias, ids)));
  EXPECT_THAT(y, ElementsAre(51, 62, 13, 24, 5, 6, 37, 48));
}

TEST(ElementwiseTest, AddId_IdBeyondTable_NamesTheNode) {
  OneOp op;
  const NodeId x = op.F32({2, 1, 1}, {1, 2});
  const NodeId bias = op.F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const NodeId y = op.builder.Name(op.builder.AddId(x, bias, op.I32({1, 1}, {3})), "sum");
  EXPECT_THAT(op.Run(y), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("(add_id 'sum'): id 3 is not in [0, 3)")));
}

TEST(ElementwiseTest, ScaleAndClamp_FollowTheirFormulas) {
  OneOp op;
  const NodeId x = op.F32({4}, {-2, -0.5f, 0.5f, 2});
  const NodeId scaled = op.builder.Scale(x, 3, 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.Clamp(x, -1, 0.75f)));
  EXPECT_THAT(y, ElementsAre(-1, -0.5f, 0.5f, 0.75f));
  EXPECT_THAT(op.host().F32(scaled), ElementsAre(-5, -0.5f, 2.5f, 7));
}

// What each function is at 0.5 and -1.25, computed apart in double precision.
struct UnaryCase {
  UnaryKind kind;
  double at_half;
  double at_minus;
};

TEST(ElementwiseTest, Unary_EveryKind_HasItsTabledValues) {
  const double gelu_half = 0.5 * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (0.5 + 0.044715 / 8)));
  const double gelu_minus =
      -0.625 * (1 + std::tanh(std::sqrt(2 / M_PI) * (-1.25 - 0.044715 * 1.953125)));
  const UnaryCase cases[] = {
      {UnaryKind::kSilu, 0.5 / (1 + std::exp(-0.5)), -1.25 / (1 + std::exp(1.25))},
      {UnaryKind::kGelu, gelu_half, gelu_minus},
      {UnaryKind::kGeluErf, 0.34573123063700656, -0.13206222178345296},
      {UnaryKind::kGeluQuick, 0.5 / (1 + std::exp(-0.851)), -1.25 / (1 + std::exp(2.1275))},
      {UnaryKind::kSigmoid, 0.6224593312018546, 0.22270013882530884},
      {UnaryKind::kTanh, 0.46211715726000975, -0.8482836399575129},
      {UnaryKind::kExp, 1.6487212707001282, 0.2865047968601901},
      {UnaryKind::kNeg, -0.5, 1.25},
      {UnaryKind::kRelu, 0.5, 0},
      {UnaryKind::kSoftplus, 0.9740769841801067, 0.2519290813154377},
      {UnaryKind::kSqr, 0.25, 1.5625},
      {UnaryKind::kSqrt, 0.7071067811865476, NAN},
      {UnaryKind::kLog, -0.6931471805599453, NAN},
      {UnaryKind::kSin, 0.479425538604203, -0.9489846193555862},
      {UnaryKind::kCos, 0.8775825618903728, 0.3153223623952687},
  };
  ASSERT_EQ(std::size(cases), static_cast<size_t>(kUnaryKindCount));
  for (const UnaryCase& unary : cases) {
    SCOPED_TRACE(std::string(UnaryName(unary.kind)));
    OneOp op;
    const NodeId x = op.F32({2}, {0.5f, -1.25f});
    ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.Unary(x, unary.kind)));
    EXPECT_NEAR(y[0], unary.at_half, 1e-6);
    if (std::isnan(unary.at_minus)) {
      EXPECT_TRUE(std::isnan(y[1]));
    } else {
      EXPECT_NEAR(y[1], unary.at_minus, 1e-6);
    }
  }
}

TEST(ElementwiseTest, Unary_LargeInputs_DoNotOverflow) {
  for (const UnaryKind kind : {UnaryKind::kSilu, UnaryKind::kGelu, UnaryKind::kSoftplus}) {
    OneOp op;
    const NodeId x = op.F32({2}, {1000, -1000});
    ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.Unary(x, kind)));
    EXPECT_THAT(y, ElementsAre(1000, 0)) << std::string(UnaryName(kind));
  }
}

// Spec M.5.
TEST(ElementwiseTest, Glu_SwigluOai_WorkedValues) {
  OneOp op;
  const NodeId gate = op.F32({3}, {1, 10, -3});
  const NodeId up = op.F32({3}, {2, -9, 0.5f});
  const NodeId y = op.builder.Glu(gate, up, {GluKind::kSwigluOai, false, 1.702f, 7.0f});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  ExpectNear(values, {2.5373873, -41.9997188, -.0271070});
}

TEST(ElementwiseTest, Glu_OneSource_TakesHalvesInOrder) {
  OneOp op;
  const NodeId x = op.F32({4, 2}, {1, -2, 3, 4, 5, 6, -7, 8});
  const NodeId plain = op.builder.Make(Op::kGlu, GluAttributes{GluKind::kReglu}, {x});
  const NodeId swapped = op.builder.Make(Op::kGlu, GluAttributes{GluKind::kReglu, true}, {x});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(plain));
  EXPECT_THAT(y, ElementsAre(3, 0, -35, 48));
  EXPECT_THAT(op.host().F32(swapped), ElementsAre(3, -8, 0, 48));
}

TEST(ElementwiseTest, Glu_OtherKinds_FollowTheirFormulas) {
  OneOp op;
  const NodeId gate = op.F32({2}, {0.5f, -1.25f});
  const NodeId up = op.F32({2}, {2, 4});
  const NodeId silu = op.builder.Unary(gate, UnaryKind::kSilu);
  const NodeId gelu = op.builder.Unary(gate, UnaryKind::kGelu);
  const NodeId swiglu = op.builder.Swiglu(gate, up);
  const NodeId geglu = op.builder.Glu(gate, up, {GluKind::kGeglu});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(swiglu));
  const std::vector<float> s = op.host().F32(silu);
  const std::vector<float> g = op.host().F32(gelu);
  ExpectNear(y, {2.0 * s[0], 4.0 * s[1]}, 1e-6);
  ExpectNear(op.host().F32(geglu), {2.0 * g[0], 4.0 * g[1]}, 1e-6);
}

}  // namespace
}  // namespace weft
