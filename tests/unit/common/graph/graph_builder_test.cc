// The builder, the text form and costs.
#include <limits>

#include "common/graph/graph_builder.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(GraphBuilder, FirstError_SticksAndIsReported) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {3, 2, 1, 1}, "w");
  const NodeId bad = builder.MulMat(w, x);
  EXPECT_EQ(bad, kNoNode);
  EXPECT_EQ(builder.Add(bad, x), kNoNode);
  EXPECT_EQ(builder.Leaf(LeafKind::kInput, 1, DType::kF32, {1, 1, 1, 1}, "y"), kNoNode);
  EXPECT_EQ(builder.Contiguous(bad), kNoNode);
  EXPECT_EQ(builder.Name(bad, "z"), kNoNode);
  builder.MarkOutput(bad);
  EXPECT_EQ(builder.graph().size(), 2);
  builder.Fail(absl::InternalError("later"));
  EXPECT_THAT(std::move(builder).Finish(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("mul_mat: inner extents differ: F32 [3, 2] and F32 [4] "
                                 "(sources: w, x)")));
}

TEST(GraphBuilder, IllegalLeaf_NamesIt) {
  GraphBuilder builder;
  builder.Leaf(LeafKind::kWeight, 0, DType::kQ4_0, {33, 1, 1, 1}, "blk.0.q");
  EXPECT_THAT(std::move(builder).Finish(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("blk.0.q")));
}

TEST(GraphBuilder, Views_KnowTheirRoot) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 4, 1, 1}, "x");
  const NodeId rows = builder.View(x, {8, 2, 1, 1}, {4, 32, 64, 64}, 32);
  const NodeId part = builder.View(rows, {4, 2, 1, 1}, {4, 32, 64, 64}, 16);
  const NodeId turned = builder.Transpose(part);
  const NodeId packed = builder.Contiguous(turned);
  const Graph& graph = builder.graph();
  EXPECT_EQ(graph.Root(turned), x);
  EXPECT_EQ(graph.node(turned).view_offset, 48);
  EXPECT_EQ(graph.Root(packed), packed);
  EXPECT_EQ(builder.Contiguous(packed), packed);
  EXPECT_FALSE(graph.Executes(turned));
  EXPECT_TRUE(graph.Executes(packed));
  EXPECT_TRUE(graph.IsLeaf(x));
  EXPECT_OK(VerifyGraph(graph));
}

TEST(GraphText, SmallGraph_IsStable) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId w = builder.Leaf(LeafKind::kWeight, 7, DType::kF16, {4, 6, 1, 1}, "w");
  builder.set_layer(0);
  const NodeId norm = builder.Name(builder.RmsNorm(x, kNoNode, 1e-6f), "norm");
  const NodeId y = builder.MulMat(w, norm);
  const NodeId half = builder.View(y, {3, 2, 1, 1}, {4, 24, 48, 48}, 12);
  builder.MarkOutput(builder.Name(builder.Scale(half, 0.5f), "out"));
  EXPECT_EQ(GraphText(builder.graph()),
            "%0 = leaf() : F32 [4, 2]  {input 0}  'x'\n"
            "%1 = leaf() : F16 [4, 6]  {weight 7}  'w'\n"
            "%2 = rms_norm(%0) : F32 [4, 2]  {epsilon 1e-06}  'norm'\n"
            "%3 = mul_mat(%1, %2) : F32 [6, 2]\n"
            "%4 = view(%3) : F32 [3, 2]  {offset 12 strides 4 24 48 48}\n"
            "%5 = scale(%4) : F32 [3, 2]  {factor 0.5 bias 0}  output  'out'\n");
  EXPECT_EQ(NodeText(builder.graph(), norm), "node 2 (rms_norm 'norm')");
  EXPECT_EQ(builder.graph().node(norm).layer, 0);
}

TEST(NodeCost, MulMat_CountsFlopsAndBytes) {
  GraphBuilder builder;
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kQ8_0, {64, 10, 1, 1}, "w");
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 3, 1, 1}, "x");
  const OpCost cost = NodeCost(builder.graph(), builder.MulMat(w, x));
  EXPECT_EQ(cost.flops, 2 * 64 * 10 * 3);
  EXPECT_EQ(cost.bytes_read, 10 * 2 * 34 + 64 * 3 * 4);
  EXPECT_EQ(cost.bytes_written, 10 * 3 * 4);
}

TEST(NodeCost, MulMatId_ReadsTheExpertsInUse) {
  GraphBuilder builder;
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {8, 4, 16, 1}, "w");
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 1, 3, 1}, "x");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {2, 3, 1, 1}, "ids");
  const OpCost cost = NodeCost(builder.graph(), builder.MulMatId(w, x, ids));
  EXPECT_EQ(cost.flops, 2 * 8 * 4 * 2 * 3);
  EXPECT_EQ(cost.bytes_read, 6 * 8 * 4 * 4 + 8 * 3 * 4 + 6 * 4);
}

TEST(NodeCost, HugeTensors_Saturate) {
  GraphBuilder builder;
  const int64_t huge = int64_t{1} << 30;
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {huge, huge, 1, 1}, "w");
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {huge, huge, 1, 1}, "x");
  const OpCost cost = NodeCost(builder.graph(), builder.MulMat(w, x));
  EXPECT_EQ(cost.flops, std::numeric_limits<int64_t>::max());
  EXPECT_GT(cost.bytes_read, 0);
}

}  // namespace
}  // namespace weft
