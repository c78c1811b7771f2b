#include "common/base/random.h"
#include "common/tensor/quant/reference_codec.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MatmulTest, MulMat_PlainProduct) {
  OneOp op;
  const NodeId a = op.F32({3, 2}, {1, 2, 3, 4, 5, 6});
  const NodeId b = op.F32({3, 2}, {1, 0, -1, 2, 1, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.MulMat(a, b)));
  EXPECT_THAT(y, ElementsAre(-2, -2, 4, 13));
}

TEST(MatmulTest, MulMat_BatchDimensions_RepeatByDivision) {
  OneOp op;
  const NodeId a = op.F32({1, 1, 2}, {10, 100});
  const NodeId b = op.F32({1, 1, 4}, {1, 2, 3, 4});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.MulMat(a, b)));
  EXPECT_THAT(y, ElementsAre(10, 20, 300, 400));
}

TEST(MatmulTest, MulMat_EveryWeightType_IsTheProductOfItsExpandedValues) {
  constexpr uint64_t kSeed = 11;
  Random random(kSeed);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    SCOPED_TRACE(std::string(info.name));
    OneOp op;
    std::vector<float> weights(512 * 3);
    std::vector<float> column(512);
    for (float& value : weights) value = static_cast<float>(random.Normal());
    for (float& value : column) value = static_cast<float>(random.Normal());
    const NodeId a = op.Typed(info.dtype, {512, 3}, weights);
    const NodeId y = op.builder.MulMat(a, op.F32({512}, column));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> got, op.Run(y));
    const std::vector<float> expanded = op.host().F32(a);
    for (size_t i = 0; i < 3; ++i) {
      double want = 0;
      for (size_t k = 512; k-- > 0;) want += static_cast<double>(expanded[i * 512 + k]) * column[k];
      EXPECT_NEAR(got[i], want, 1e-4);
    }
  }
}

TEST(MatmulTest, MulMatId_SharedAndOwnColumns_NegativeIdGivesZeros) {
  OneOp op;
  const NodeId experts = op.F32({1, 1, 3}, {1, 10, 100});
  const NodeId own = op.F32({1, 2, 2}, {1, 2, 3, 4});
  const NodeId shared = op.F32({1, 1, 2}, {5, 6});
  const NodeId ids = op.I32({2, 2}, {2, 0, -1, 1});
  const NodeId y = op.builder.MulMatId(experts, shared, ids);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values,
                       op.Run(op.builder.MulMatId(experts, own, ids)));
  EXPECT_THAT(values, ElementsAre(100, 2, 0, 40));
  EXPECT_THAT(op.host().F32(y), ElementsAre(500, 5, 0, 60));
}

TEST(MatmulTest, MulMatId_UnknownExpert_IsAnError) {
  OneOp op;
  const NodeId y = op.builder.MulMatId(op.F32({1, 1, 3}, {1, 2, 3}), op.F32({1, 1, 1}, {1}),
                                       op.I32({1, 1}, {3}));
  EXPECT_THAT(op.Run(y), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("expert id 3 is not in [0, 3)")));
}

TEST(MatmulTest, MoeRouting_WorkedValues) {
  // Spec M.5: logits (1,3,2,0), two used.
  OneOp op;
  const NodeId logits = op.F32({4}, {1, 3, 2, 0});
  const NodeId p = op.builder.SoftMax(logits);
  const NodeId ids = op.builder.TopK(p, 2, kNoNode);
  const NodeId weights = op.builder.GetRows(op.builder.Reshape(p, {1, 4, 1, 1}), ids);
  const NodeId row = op.builder.Reshape(weights, {2, 1, 1, 1});
  const NodeId normalised = op.builder.Div(row, op.builder.SumRows(row));
  const NodeId selected = op.builder.GetRows(op.builder.Reshape(logits, {1, 4, 1, 1}), ids);
  const NodeId later = op.builder.SoftMax(op.builder.Reshape(selected, {2, 1, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, op.Run(normalised));
  EXPECT_THAT(op.host().I32(ids), ElementsAre(1, 2));
  ExpectNear(op.host().F32(weights), {.6439143, .2368828}, 1e-6);
  ExpectNear(got, {.7310586, .2689414}, 1e-6);
  ExpectNear(op.host().F32(later), {.7310586, .2689414}, 1e-6);
}

// A X is B again, for both triangles, with and without a stored diagonal.
TEST(MatmulTest, SolveTri_TimesTheTriangleGivesBack) {
  constexpr uint64_t kSeed = 12;
  Random random(kSeed);
  for (const bool lower : {true, false}) {
    for (const bool diagonal : {true, false}) {
      OneOp op;
      constexpr size_t n = 4, m = 3;
      std::vector<float> matrix(n * n), right(n * m);
      for (float& value : matrix) value = static_cast<float>(random.Uniform() + 0.5);
      for (float& value : right) value = static_cast<float>(random.Normal());
      const NodeId x = op.builder.Make(Op::kSolveTri, TriangleAttributes{lower, diagonal},
                                       {op.F32({n, n}, matrix), op.F32({m, n}, right)});
      ASSERT_OK_AND_ASSIGN(const std::vector<float> solved, op.Run(x));
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < m; ++j) {
          double sum = 0;
          for (size_t k = 0; k < n; ++k) {
            const bool inside = k == i || (k < i) == lower;
            const double factor = k == i && !diagonal ? 1 : matrix[i * n + k];
            if (inside) sum += factor * solved[k * m + j];
          }
          EXPECT_NEAR(sum, right[i * m + j], 1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
