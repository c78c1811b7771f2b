// Every shape rule, with legal operands and with each way to be illegal.
#include <limits>
#include <utility>

#include "gtest/gtest.h"
#include "tests/unit/common/graph/shape_rules_check.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kHuge = int64_t{1} << 62;

AllGatherAttributes Gather(DType dtype, int32_t axis, const Extents& ne,
                           std::vector<int64_t> counts) {
  return {{0, 0}, dtype, dtype, axis, ne, std::move(counts)};
}

TEST(ShapeRules, Views) {
  const auto view = [](Extents ne, Extents nb, int64_t offset) {
    return ViewAttributes{ne, nb, offset};
  };
  CheckShapes({
      {Op::kView, view({2, 3, 1, 1}, {4, 32, 96, 96}, 8), {F32(8, 4)}, "F32 [2, 3]"},
      {Op::kView, view({2, 5, 1, 1}, {4, 0, 0, 0}, 0), {F32(2)}, "F32 [2, 5]"},
      {Op::kView, view({0, 5, 1, 1}, {4, kHuge, 4, 4}, 0), {F32(2)}, "F32 [0, 5]"},
      {Op::kView, view({2, 4, 1, 1}, {4, 32, 96, 96}, 32), {F32(8, 4)}, "leaves its source"},
      {Op::kView, view({2, 1, 1, 1}, {4, 8, 8, 8}, -4), {F32(8)}, "offset -4"},
      {Op::kView, view({2, 1, 1, 1}, {4, 8, 8, 8}, 2), {F32(8)}, "offset 2"},
      {Op::kView, view({2, 2, 1, 1}, {4, -8, 8, 8}, 8), {F32(8)}, "stride"},
      {Op::kView, view({2, 1, 1, 1}, {8, 8, 8, 8}, 0), {F32(8)}, "contiguous rows"},
      {Op::kView, view({-2, 1, 1, 1}, {4, 8, 8, 8}, 0), {F32(8)}, "negative extent"},
      {Op::kView, view({2, kHuge, 1, 1}, {4, 4, 4, 4}, 0), {F32(8)}, "too many"},
      {Op::kView, view({2, 3, 1, 1}, {4, kHuge, 4, 4}, 0), {F32(8)}, "leaves its source"},
      {Op::kView, view({2, 1, 1, 1}, {4, 4, 4, 4}, kHuge), {F32(8)}, "leaves its source"},
      {Op::kView, view({32, 1, 1, 1}, {34, 34, 34, 34}, 34), {Of(DType::kQ8_0, 64)}, "Q8_0 [32]"},
      {Op::kView, view({16, 1, 1, 1}, {34, 34, 34, 34}, 0), {Of(DType::kQ8_0, 64)}, "block"},
      {Op::kReshape, ReshapeAttributes{{6, 4, 1, 1}}, {F32(8, 3)}, "F32 [6, 4]"},
      {Op::kReshape, ReshapeAttributes{{6, 5, 1, 1}}, {F32(8, 3)}, "cannot reshape"},
      {Op::kReshape, ReshapeAttributes{{6, -4, 1, 1}}, {F32(8, 3)}, "negative extent"},
      {Op::kReshape, ReshapeAttributes{{6, 4, 1, 1}}, {Transposed(8, 3)}, "not contiguous"},
      {Op::kPermute, PermuteAttributes{{0, 2, 1, 3}}, {F32(2, 3, 4)}, "F32 [2, 4, 3]"},
      {Op::kPermute, PermuteAttributes{{1, 2, 0, 3}}, {F32(2, 3, 4)}, "F32 [4, 2, 3]"},
      {Op::kPermute, PermuteAttributes{{0, 0, 1, 3}}, {F32(2, 3, 4)}, "not a permutation"},
      {Op::kPermute, PermuteAttributes{{0, 1, 2, 4}}, {F32(2, 3, 4)}, "not a permutation"},
      {Op::kPermute, PermuteAttributes{{-1, 1, 2, 3}}, {F32(2, 3, 4)}, "not a permutation"},
      {Op::kPermute, PermuteAttributes{{1, 0, 2, 3}}, {Of(DType::kQ8_0, 32, 2)}, "block type"},
      {Op::kTranspose, {}, {F32(2, 3)}, "F32 [3, 2]"},
      {Op::kTranspose, {}, {Of(DType::kQ4_0, 32, 2)}, "block type"},
  });
}

TEST(ShapeRules, Movement) {
  CheckShapes({
      {Op::kCopy, CopyAttributes{DType::kF16}, {Transposed(4, 3)}, "F16 [4, 3]"},
      {Op::kCopy, CopyAttributes{DType::kQ8_0}, {F32(64, 2)}, "Q8_0 [64, 2]"},
      {Op::kCopy, CopyAttributes{DType::kQ8_0}, {F32(48)}, "block"},
      {Op::kCopy, CopyAttributes{DType::kI32}, {I32(3)}, "I32 [3]"},
      {Op::kCopy, CopyAttributes{DType::kF32}, {I32(3)}, "no conversion from I32 to F32"},
      {Op::kCopy, CopyAttributes{static_cast<DType>(200)}, {F32(3)}, "unknown type"},
      {Op::kConcat, AxisAttributes{1}, {F32(4, 2), F32(4, 3)}, "F32 [4, 5]"},
      {Op::kConcat, AxisAttributes{0}, {F32(4, 2), F32(4, 3)}, "cannot join"},
      {Op::kConcat, AxisAttributes{4}, {F32(4), F32(4)}, "axis 4"},
      {Op::kConcat, AxisAttributes{-1}, {F32(4), F32(4)}, "axis -1"},
      {Op::kConcat, AxisAttributes{0}, {F32(4), I32(4)}, "differ in type"},
      {Op::kConcat, AxisAttributes{1}, {Of(DType::kQ8_0, 32), Of(DType::kQ8_0, 32)}, "block types"},
      {Op::kRepeat, RepeatAttributes{{4, 6, 1, 1}}, {F32(2, 3)}, "F32 [4, 6]"},
      {Op::kRepeat, RepeatAttributes{{3, 6, 1, 1}}, {F32(2, 3)}, "cannot repeat"},
      {Op::kRepeat, RepeatAttributes{{kHuge, kHuge, 1, 1}}, {F32(1)}, "too many"},
      {Op::kRepeat, RepeatAttributes{{2, 1, 1, 1}}, {I32(1)}, "want F32"},
      {Op::kPad, PadAttributes{{1, 2, 0, 0}}, {F32(2, 3)}, "F32 [3, 5]"},
      {Op::kPad, PadAttributes{{-1, 0, 0, 0}}, {F32(2, 3)}, "padding -1"},
      {Op::kPad, PadAttributes{{kHuge, kHuge, 0, 0}}, {F32(2, 3)}, "too many"},
      {Op::kFill, FillAttributes{{2, 2, 1, 1}, -kInfinity}, {}, "F32 [2, 2]"},
      {Op::kFill, FillAttributes{{2, 2, 1, 1}, kNan}, {}, "not a number"},
      {Op::kFill, FillAttributes{{2, -2, 1, 1}, 0}, {}, "negative extent"},
      {Op::kReceive, ReceiveAttributes{DType::kF16, {5, 2, 1, 1}}, {}, "F16 [5, 2]"},
      {Op::kReceive, ReceiveAttributes{DType::kQ8_0, {33, 1, 1, 1}}, {}, "block"},
      {Op::kReceive, ReceiveAttributes{DType::kF32, {2, -2, 1, 1}}, {}, "negative extent"},
      {Op::kReceive, ReceiveAttributes{DType::kF32, {kHuge, kHuge, 1, 1}}, {}, "too many"},
      {Op::kReceive, ReceiveAttributes{static_cast<DType>(200), {1, 1, 1, 1}}, {}, "unknown type"},
      {Op::kAllReduce, AllReduceAttributes{{0, 0}, DType::kF32}, {F32(5, 2)}, "F32 [5, 2]"},
      {Op::kAllReduce, AllReduceAttributes{{0, 0}, DType::kQ8_0}, {F32(5, 2)}, "F32 [5, 2]"},
      {Op::kAllReduce, AllReduceAttributes{{0, 0}, DType::kF16}, {F32(5)}, "cannot travel as F16"},
      {Op::kAllReduce,
       AllReduceAttributes{{0, 0}, static_cast<DType>(200)},
       {F32(5)},
       "an unknown type"},
      {Op::kAllReduce, AllReduceAttributes{{0, 0}, DType::kF32}, {I32(5)}, "want F32"},
      {Op::kAllReduce, AllReduceAttributes{{0, 0}, DType::kF32}, {Transposed(4, 2)}, "not packed"},
      {Op::kAllReduce, AllReduceAttributes{{8192, 0}, DType::kF32}, {F32(5)}, "collective 8192"},
      {Op::kAllReduce, AllReduceAttributes{{-1, 0}, DType::kF32}, {F32(5)}, "collective -1"},
      {Op::kAllReduce, AllReduceAttributes{{0, -1}, DType::kF32}, {F32(5)}, "communicator -1"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {2, 0, 3}), {F32(3, 2)}, "F32 [5, 2]"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {2, 0, 3}), {}, "F32 [5, 2]"},
      {Op::kAllGather, Gather(DType::kI32, 1, {5, 2, 1, 1}, {2, 0}), {I32(5, 2)}, "I32 [5, 2]"},
      {Op::kAllGather, Gather(DType::kI32, 1, {5, 2, 1, 1}, {2, 0}), {F32(5, 2)}, "want I32"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {2, 0, 3}), {F32(4, 2)}, "no part"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {2, 2}), {}, "parts of 4 together"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {6, -1}), {}, "a part of -1"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {kHuge, kHuge}), {}, "a part of"},
      {Op::kAllGather, Gather(DType::kF32, 0, {5, 2, 1, 1}, {}), {}, "parts of 0 ranks"},
      {Op::kAllGather, Gather(DType::kF32, 4, {5, 2, 1, 1}, {5}), {}, "axis 4"},
      {Op::kAllGather, Gather(DType::kF16, 0, {5, 2, 1, 1}, {5}), {}, "only F32 and I32"},
      {Op::kAllGather,
       Gather(DType::kF32, 0, {257, 1, 1, 1}, std::vector<int64_t>(257, 1)),
       {},
       "parts of 257 ranks"},
  });
}

TEST(ShapeRules, RowsAndTriangles) {
  CheckShapes({
      {Op::kDiag, {}, {F32(3, 1, 2)}, "F32 [3, 3, 2]"},
      {Op::kDiag, {}, {F32(3, 2)}, "not a vector"},
      {Op::kTri, TriangleAttributes{}, {F32(3, 3)}, "F32 [3, 3]"},
      {Op::kTri, TriangleAttributes{}, {F32(3, 2)}, "not square"},
      {Op::kGetRows, GetRowsAttributes{}, {Of(DType::kQ4_0, 64, 9), I32(5)}, "F32 [64, 5]"},
      {Op::kGetRows, GetRowsAttributes{}, {I32(2, 9), I32(5)}, "I32 [2, 5]"},
      {Op::kGetRows, GetRowsAttributes{}, {F32(4, 9, 2), I32(5, 2)}, "F32 [4, 5, 2]"},
      {Op::kGetRows, GetRowsAttributes{}, {F32(4, 9, 2), I32(5)}, "do not fit table"},
      {Op::kGetRows, GetRowsAttributes{}, {F32(4, 9), F32(5)}, "want I32"},
      {Op::kGetRows, GetRowsAttributes{}, {Transposed(4, 9), I32(5)}, "rows with gaps"},
      {Op::kGetRows, GetRowsAttributes{}, {F32(4, 9, 3), TransposedIds(5, 3)}, "rows with gaps"},
      {Op::kGetRows, GetRowsAttributes{}, {Of(DType::kQ8_1, 32, 9), I32(5)}, "cannot expand"},
      {Op::kGetRows, GetRowsAttributes{700, true}, {F32(4, 9), I32(5)}, "F32 [4, 5]"},
      {Op::kGetRows, GetRowsAttributes{700, false}, {F32(4, 9), I32(5)}, "from row 700"},
      {Op::kGetRows, GetRowsAttributes{-1, true}, {F32(4, 9), I32(5)}, "from row -1"},
      {Op::kSetRows, {}, {Of(DType::kF16, 4, 9), F32(4, 2), I32(2)}, "F16 [4, 9]"},
      {Op::kSetRows, {}, {F32(4, 9), F32(3, 2), I32(2)}, "want extents [4, 2]"},
      {Op::kSetRows, {}, {F32(4, 9), F32(4, 2), I32(2, 2)}, "want extents [2]"},
      {Op::kSetRows, {}, {I32(4, 9), F32(4, 2), I32(2)}, "cannot write rows"},
  });
}

TEST(ShapeRules, ElementByElement) {
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) {
    CheckShapes({
        {op, {}, {F32(4, 6), F32(2, 3)}, "F32 [4, 6]"},
        {op, {}, {F32(4, 6), F32(3)}, "cannot repeat [3] to [4, 6]"},
        {op, {}, {F32(4), F32(4, 6)}, "cannot repeat"},
        {op, {}, {F32(4), F32(0)}, "cannot repeat"},
        {op, {}, {F32(0, 2), F32(0, 2)}, "F32 [0, 2]"},
        {op, {}, {F32(4), Of(DType::kF16, 4)}, "want F32"},
        {op, {}, {F32(3, 4), Transposed(3, 4)}, "rows with gaps"},
    });
  }
  CheckShapes({
      {Op::kAddId, {}, {F32(4, 2, 3), F32(4, 8), I32(2, 3)}, "F32 [4, 2, 3]"},
      {Op::kAddId, {}, {F32(4, 2, 3), F32(5, 8), I32(2, 3)}, "does not fit"},
      {Op::kAddId, {}, {F32(4, 2, 3), F32(4, 8), I32(3, 2)}, "want extents [2, 3]"},
      {Op::kAddId, {}, {F32(4, 2, 3), F32(4, 8), TransposedIds(2, 3)}, "rows with gaps"},
      {Op::kScale, ScaleAttributes{2, 1}, {F32(4)}, "F32 [4]"},
      {Op::kScale, ScaleAttributes{kNan, 1}, {F32(4)}, "not finite"},
      {Op::kScale, ScaleAttributes{1, kInfinity}, {F32(4)}, "not finite"},
      {Op::kScale, ScaleAttributes{}, {I32(4)}, "want F32"},
      {Op::kClamp, ClampAttributes{-kInfinity, 1}, {F32(4)}, "F32 [4]"},
      {Op::kClamp, ClampAttributes{2, 1}, {F32(4)}, "bounds 2 and 1"},
      {Op::kClamp, ClampAttributes{kNan, 1}, {F32(4)}, "bounds"},
      {Op::kUnary, UnaryAttributes{UnaryKind::kCos}, {F32(4)}, "F32 [4]"},
      {Op::kUnary, UnaryAttributes{static_cast<UnaryKind>(15)}, {F32(4)}, "unknown kind"},
      {Op::kUnary, UnaryAttributes{}, {Transposed(3, 4)}, "rows with gaps"},
      {Op::kGlu, GluAttributes{}, {F32(4, 2), F32(4, 2)}, "F32 [4, 2]"},
      {Op::kGlu, GluAttributes{GluKind::kReglu, true}, {F32(4, 2)}, "F32 [2, 2]"},
      {Op::kGlu, GluAttributes{}, {F32(5)}, "no halves"},
      {Op::kGlu, GluAttributes{}, {F32(4), F32(2)}, "want extents"},
      {Op::kGlu, GluAttributes{GluKind::kSwiglu, true}, {F32(4), F32(4)}, "swapped"},
      {Op::kGlu, GluAttributes{static_cast<GluKind>(9)}, {F32(4)}, "unknown kind"},
      {Op::kGlu, GluAttributes{GluKind::kSwiglu, false, kNan}, {F32(4)}, "not finite"},
      {Op::kGlu, GluAttributes{GluKind::kSwigluOai, false, 1, -1}, {F32(4)}, "limit -1"},
  });
}

TEST(ShapeRules, AlongRows) {
  for (const Op op : {Op::kNorm, Op::kRmsNorm}) {
    CheckShapes({
        {op, NormAttributes{}, {F32(4, 3)}, "F32 [4, 3]"},
        {op, NormAttributes{}, {F32(4, 3), F32(4)}, "F32 [4, 3]"},
        {op, NormAttributes{}, {F32(4, 3), F32(3)}, "want extents [4]"},
        {op, NormAttributes{kNan}, {F32(4)}, "not finite"},
        {op, NormAttributes{-1}, {F32(4)}, "epsilon -1"},
    });
  }
  CheckShapes({
      {Op::kL2Norm, NormAttributes{}, {F32(4, 3)}, "F32 [4, 3]"},
      {Op::kSoftMax, SoftMaxAttributes{0.5f}, {F32(4, 3)}, "F32 [4, 3]"},
      {Op::kSoftMax, SoftMaxAttributes{kInfinity}, {F32(4, 3)}, "not finite"},
      {Op::kSumRows, {}, {F32(4, 3)}, "F32 [1, 3]"},
      {Op::kMean, {}, {F32(4, 3, 2)}, "F32 [1, 3, 2]"},
      {Op::kMean, {}, {I32(4)}, "want F32"},
      {Op::kCumSum, {}, {F32(4, 3)}, "F32 [4, 3]"},
      {Op::kArgMax, {}, {F32(4, 3)}, "I32 [1, 3]"},
      {Op::kArgMax, {}, {F32(0, 3)}, "row length"},
      {Op::kTopK, TopKAttributes{2}, {F32(4, 3)}, "I32 [2, 3]"},
      {Op::kTopK, TopKAttributes{2}, {F32(4, 3), I32(3)}, "I32 [2, 3]"},
      {Op::kTopK, TopKAttributes{5}, {F32(4)}, "k = 5 of rows of 4"},
      {Op::kTopK, TopKAttributes{0}, {F32(4)}, "k = 0"},
      {Op::kTopK, TopKAttributes{2}, {F32(4, 3), I32(2)}, "want extents [3]"},
      {Op::kTopK,
       TopKAttributes{2},
       {F32(4, 3), {DType::kI32, {3, 1, 1, 1}, {8, 4, 4, 4}}},
       "rows with gaps"},
  });
}

TEST(ShapeRules, SampleCandidates) {
  const auto with = [](int32_t k, int32_t first) { return SampleCandidatesAttributes{k, first}; };
  CheckShapes({
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3)}, "F32 [10, 3]"},
      {Op::kSampleCandidates, with(9, 4), {F32(9, 3), I32(5, 3)}, "F32 [29, 3]"},
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3), I32(0, 3)}, "F32 [10, 3]"},
      {Op::kSampleCandidates, with(10, 0), {F32(9, 3)}, "k = 10 of rows of 9"},
      {Op::kSampleCandidates, with(0, 0), {F32(9, 3)}, "k = 0"},
      {Op::kSampleCandidates, with(2, -1), {F32(9, 3)}, "ids from -1"},
      {Op::kSampleCandidates, with(2, (1 << 24) - 8), {F32(9, 3)}, "in rows of 9"},
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3), I32(5, 2)}, "want extents [5, 3]"},
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3), I32((1 << 20) + 1, 3)}, "changed ids"},
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3, 2)}, "want extents [9, 3]"},
      {Op::kSampleCandidates, with(2, 0), {I32(9, 3)}, "want F32"},
      {Op::kSampleCandidates, with(2, 0), {F32(9, 3), F32(5, 3)}, "want I32"},
  });
}

TEST(ShapeRules, Products) {
  CheckShapes({
      {Op::kMulMat, {}, {Of(DType::kQ4_K, 256, 5), F32(256, 3)}, "F32 [5, 3]"},
      {Op::kMulMat, {}, {F32(4, 5, 2), F32(4, 3, 6)}, "F32 [5, 3, 6]"},
      {Op::kMulMat, {}, {F32(4, 5), F32(3, 3)}, "inner extents differ"},
      {Op::kMulMat, {}, {F32(4, 5, 4), F32(4, 3, 6)}, "do not divide"},
      {Op::kMulMat, {}, {F32(4, 5, 0), F32(4, 3, 6)}, "do not divide"},
      {Op::kMulMat, {}, {Of(DType::kI8, 4, 5), F32(4, 3)}, "cannot multiply by I8"},
      {Op::kMulMat, {}, {Transposed(4, 5), F32(4, 3)}, "rows with gaps"},
      {Op::kMulMat, {}, {F32(4, 5), Of(DType::kF16, 4, 3)}, "want F32"},
      {Op::kMulMatId, {}, {F32(4, 5, 8), F32(4, 1, 3), I32(2, 3)}, "F32 [5, 2, 3]"},
      {Op::kMulMatId, {}, {F32(4, 5, 8), F32(4, 2, 3), I32(2, 3)}, "F32 [5, 2, 3]"},
      {Op::kMulMatId, {}, {F32(4, 5, 8), F32(4, 3, 3), I32(2, 3)}, "do not fit"},
      {Op::kMulMatId, {}, {F32(4, 5, 8), F32(4, 1, 3), I32(2, 4)}, "do not fit"},
      {Op::kMulMatId, {}, {F32(4, 5, 8, 2), F32(4, 1, 3), I32(2, 3)}, "too many dimensions"},
      {Op::kMulMatId, {}, {F32(4, 5, 8), F32(4, 1, 3), TransposedIds(2, 3)}, "rows with gaps"},
      {Op::kSolveTri, TriangleAttributes{}, {F32(4, 4), F32(3, 4)}, "F32 [3, 4]"},
      {Op::kSolveTri, TriangleAttributes{}, {F32(4, 3), F32(3, 4)}, "not square"},
      {Op::kSolveTri, TriangleAttributes{}, {F32(4, 4), F32(3, 5)}, "want extents"},
  });
}

}  // namespace
}  // namespace weft
