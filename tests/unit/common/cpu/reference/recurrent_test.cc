#include <cmath>

#include "common/base/random.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RecurrentTest, SsmConv_SlidesTheKernelPerChannel) {
  OneOp op;
  const NodeId x = op.F32({4, 2, 1}, {1, 2, 3, 4, 10, 20, 30, 40});
  const NodeId w = op.F32({2, 2}, {1, 2, 3, 4});
  const NodeId y = op.builder.Make(Op::kSsmConv, {}, {x, w});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  EXPECT_THAT(values, ElementsAre(5, 110, 8, 180, 11, 250));
}

// The data of spec M.3: one head, two tokens, h = 2.
struct DeltaNet {
  int64_t tokens = 2;
  std::vector<float> q = {1, 0, .6f, .8f};
  std::vector<float> k = {.6f, .8f, 1, 0};
  std::vector<float> v = {1, 2, 3, -1};
  std::vector<float> g = {-.1f, -.2f};
  std::vector<float> beta = {.5f, 1};
  std::vector<float> state = {0, 0, 0, 0};
  std::vector<int32_t> valid = {};  // empty: no source
};

absl::StatusOr<std::vector<float>> Evolve(const DeltaNet& net) {
  OneOp op;
  const Extents rows = {2, 1, net.tokens, 1};
  const Extents scalars = {1, 1, net.tokens, 1};
  const NodeId q = op.F32(rows, net.q);
  const NodeId k = op.F32(rows, net.k);
  const NodeId v = op.F32(rows, net.v);
  const Extents decay = net.g.size() == net.q.size() ? rows : scalars;
  const NodeId g = op.F32(decay, net.g);
  const NodeId beta = op.F32(scalars, net.beta);
  const NodeId state = op.F32({2, 2, 1, 1}, net.state);
  const NodeId valid = net.valid.empty() ? kNoNode : op.I32({1}, net.valid);
  return op.Run(op.builder.Make(Op::kGatedDeltaNet, {}, {q, k, v, g, beta, state, valid}));
}

TEST(RecurrentTest, GatedDeltaNet_WorkedValues) {
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Evolve(DeltaNet{}));
  // Outputs of both tokens, then the state with i fastest.
  ExpectNear(y, {.2121320, .4242641, 1.4580498, -.0537488, 3, .3274923, -1, .6549846});
}

TEST(RecurrentTest, GatedDeltaNet_SplitInTwo_EqualsOneRun) {
  ASSERT_OK_AND_ASSIGN(const std::vector<float> whole, Evolve(DeltaNet{}));
  DeltaNet first{1, {1, 0}, {.6f, .8f}, {1, 2}, {-.1f}, {.5f}};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> half, Evolve(first));
  DeltaNet second{1, {.6f, .8f}, {1, 0}, {3, -1}, {-.2f}, {1}};
  second.state.assign(half.begin() + 2, half.end());
  ASSERT_OK_AND_ASSIGN(const std::vector<float> rest, Evolve(second));
  ExpectNear(rest, {whole[2], whole[3], whole[4], whole[5], whole[6], whole[7]});
}

TEST(RecurrentTest, GatedDeltaNet_VectorDecayOfEqualParts_EqualsScalar) {
  DeltaNet net;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> scalar, Evolve(net));
  net.g = {-.1f, -.1f, -.2f, -.2f};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> vector, Evolve(net));
  EXPECT_EQ(scalar, vector);
}

TEST(RecurrentTest, GatedDeltaNet_PaddingTokens_LeaveTheState) {
  DeltaNet short_net{1, {1, 0}, {.6f, .8f}, {1, 2}, {-.1f}, {.5f}};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> unpadded, Evolve(short_net));
  DeltaNet padded;
  padded.valid = {1};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Evolve(padded));
  EXPECT_THAT(y, ElementsAre(unpadded[0], unpadded[1], 0, 0, unpadded[2], unpadded[3], unpadded[4],
                             unpadded[5]));
}

TEST(RecurrentTest, GatedDeltaNet_ValidCountOutOfRange_IsAnError) {
  DeltaNet net;
  net.valid = {3};
  EXPECT_THAT(Evolve(net), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("valid count 3 is not in [0, 3)")));
}

// Value head j uses key head j mod n_k.
TEST(RecurrentTest, GatedDeltaNet_ValueHeadsTileOverKeyHeads) {
  OneOp op;
  const NodeId q = op.F32({1, 2, 1, 1}, {1, 1});
  const NodeId k = op.F32({1, 2, 1, 1}, {1, 2});
  const NodeId v = op.F32({1, 4, 1, 1}, {1, 1, 1, 1});
  const NodeId zeros = op.F32({1, 4, 1, 1}, {0, 0, 0, 0});
  const NodeId ones = op.F32({1, 4, 1, 1}, {1, 1, 1, 1});
  const NodeId state = op.F32({1, 1, 4, 1}, {0, 0, 0, 0});
  const NodeId y = op.builder.Make(Op::kGatedDeltaNet, {}, {q, k, v, zeros, ones, state});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  EXPECT_THAT(values, ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
}

}  // namespace
}  // namespace weft
