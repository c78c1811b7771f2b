#include <numeric>

#include "common/tensor/quant/reference_codec.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(MoveTest, Copy_Transposed_PacksInNewOrder) {
  OneOp op;
  const NodeId x = op.F32({3, 2}, Counting(6));
  const NodeId y = op.builder.Copy(op.builder.Transpose(x), DType::kF32);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  EXPECT_THAT(values, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(MoveTest, Copy_TransposedToHalf_Converts) {
  OneOp op;
  const NodeId x = op.F32({3, 2}, {0, 0.1f, 2, 3, 4, 5});
  const NodeId y = op.builder.Copy(op.builder.Transpose(x), DType::kF16);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  EXPECT_THAT(values, ElementsAre(0, 3, HalfToFloat(FloatToHalf(0.1f)), 4, 2, 5));
}

TEST(MoveTest, Copy_ThroughBlocks_RoundsAsTheCodec) {
  OneOp op;
  std::vector<float> values = Counting(64);
  const NodeId q8 = op.builder.Copy(op.F32({32, 2}, values), DType::kQ8_0);
  const NodeId back = op.builder.Copy(q8, DType::kF32);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, op.Run(back));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], values[i], 63.0 / 127 / 2 + 0.02);
  EXPECT_NE(got, values);
}

TEST(MoveTest, Copy_Integers_KeepTheirBits) {
  OneOp op;
  const NodeId x = op.I32({2, 2}, {1 << 30, -5, 7, 0x7fc00001});
  const NodeId y = op.builder.Copy(op.builder.Transpose(x), DType::kI32);
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> got, op.RunI32(y));
  EXPECT_THAT(got, ElementsAre(1 << 30, 7, -5, 0x7fc00001));
}

TEST(MoveTest, Concat_AlongEachAxis) {
  OneOp op;
  const NodeId a = op.F32({2, 2}, {0, 1, 2, 3});
  const NodeId rows = op.F32({2, 1}, {8, 9});
  const NodeId columns = op.F32({1, 2}, {6, 7});
  const NodeId down = op.builder.Concat(a, rows, 1);
  const NodeId across = op.builder.Concat(a, columns, 0);
  const NodeId deep = op.builder.Concat(a, a, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(down));
  EXPECT_THAT(y, ElementsAre(0, 1, 2, 3, 8, 9));
  EXPECT_THAT(op.host().F32(across), ElementsAre(0, 1, 6, 2, 3, 7));
  EXPECT_THAT(op.host().F32(deep), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(MoveTest, RepeatAndPad_FillTheNewExtents) {
  OneOp op;
  const NodeId x = op.F32({2, 1}, {1, 2});
  const NodeId repeated = op.builder.Repeat(x, {4, 2, 1, 1});
  const NodeId padded = op.builder.Make(Op::kPad, PadAttributes{{1, 1, 0, 0}}, {x});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(repeated));
  EXPECT_THAT(y, ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(op.host().F32(padded), ElementsAre(1, 2, 0, 0, 0, 0));
}

TEST(MoveTest, FillDiagTri_WriteWholeTensors) {
  OneOp op;
  const NodeId fill = op.builder.Make(Op::kFill, FillAttributes{{2, 2, 1, 1}, 3}, {});
  const NodeId diagonal = op.builder.Make(Op::kDiag, {}, {op.F32({2, 1, 2}, {1, 2, 3, 4})});
  const NodeId square = op.F32({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const NodeId lower = op.builder.Make(Op::kTri, TriangleAttributes{true, true}, {square});
  const NodeId upper = op.builder.Make(Op::kTri, TriangleAttributes{false, false}, {square});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(fill));
  EXPECT_THAT(y, ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(op.host().F32(diagonal), ElementsAre(1, 0, 0, 2, 3, 0, 0, 4));
  EXPECT_THAT(op.host().F32(lower), ElementsAre(1, 0, 0, 4, 5, 0, 7, 8, 9));
  EXPECT_THAT(op.host().F32(upper), ElementsAre(0, 2, 3, 0, 0, 6, 0, 0, 0));
}

TEST(MoveTest, GetRows_BatchedWithNegativeId_GivesZeros) {
  OneOp op;
  const NodeId table = op.F32({2, 2, 2}, Counting(8));
  const NodeId ids = op.I32({3, 2}, {1, 0, -1, 0, 0, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(op.builder.GetRows(table, ids)));
  EXPECT_THAT(y, ElementsAre(2, 3, 0, 1, 0, 0, 4, 5, 4, 5, 6, 7));
}

TEST(MoveTest, GetRows_IntegerTable_KeepsIntegers) {
  OneOp op;
  const NodeId table = op.I32({1, 3}, {7, 1 << 30, -9});
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> y,
                       op.RunI32(op.builder.GetRows(table, op.I32({2}, {2, 1}))));
  EXPECT_THAT(y, ElementsAre(-9, 1 << 30));
}

TEST(MoveTest, GetRows_IdBeyondTable_IsAnError) {
  OneOp op;
  const NodeId y = op.builder.GetRows(op.F32({2, 2}, Counting(4)), op.I32({1}, {2}));
  EXPECT_THAT(op.Run(y),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row id 2 is not in [0, 2)")));
}

TEST(MoveTest, SetRows_ConvertsAndLeavesOtherRows) {
  OneOp op;
  const NodeId table = op.Typed(DType::kF16, {2, 3}, Counting(6));
  const NodeId rows = op.F32({2, 3}, {10, 11, 12, 13, 14, 15});
  const NodeId y = op.builder.Make(Op::kSetRows, {}, {table, rows, op.I32({3}, {2, -1, 0})});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> values, op.Run(y));
  EXPECT_THAT(values, ElementsAre(14, 15, 2, 3, 10, 11));
}

TEST(MoveTest, SetRows_IdBeyondTable_IsAnError) {
  OneOp op;
  const NodeId y = op.builder.Make(Op::kSetRows, {},
                                   {op.F32({1, 2}, {0, 0}), op.F32({1, 1}, {5}), op.I32({1}, {2})});
  EXPECT_THAT(op.Run(y),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row id 2 is not in [0, 2)")));
}

}  // namespace
}  // namespace weft
