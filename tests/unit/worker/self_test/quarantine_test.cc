#include "worker/self_test/quarantine.h"

#include <utility>

#include "common/graph/graph_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A graph with one node of each sort that the tests ask about.
struct Nodes {
  Nodes() {
    const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 4, 1, 1}, "x");
    const NodeId weight = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {64, 1, 1, 1}, "w");
    const NodeId q4 = builder.Leaf(LeafKind::kWeight, 1, DType::kQ4_0, {64, 8, 1, 1}, "q4");
    const NodeId f16 = builder.Leaf(LeafKind::kWeight, 2, DType::kF16, {64, 8, 1, 1}, "f16");
    product_q4 = builder.MulMat(q4, x);
    product_f16 = builder.MulMat(f16, x);
    norm = builder.RmsNorm(x, kNoNode, 1e-5f);
    weighted_norm = builder.RmsNorm(x, weight, 1e-5f);
    q4_to_f32 = builder.Copy(q4, DType::kF32);
    q4_to_f16 = builder.Copy(q4, DType::kF16);
    top = builder.TopK(x, 3, kNoNode);
  }

  const Graph& graph() const { return builder.graph(); }
  OpKind Kind(NodeId id) const { return OpKindOf(graph(), id); }

  GraphBuilder builder;
  NodeId product_q4, product_f16, norm, weighted_norm, q4_to_f32, q4_to_f16, top;
};

TEST(QuarantineTest, KindText_OfNodes_NamesOpAndTypes) {
  const Nodes nodes;
  EXPECT_EQ(OpKindText(nodes.Kind(nodes.product_q4)), "mul_mat Q4_0");
  EXPECT_EQ(OpKindText(nodes.Kind(nodes.norm)), "rms_norm F32");
  EXPECT_EQ(OpKindText(nodes.Kind(nodes.weighted_norm)), "fused rms_norm F32");
  EXPECT_EQ(OpKindText(nodes.Kind(nodes.q4_to_f16)), "copy F16 Q4_0");
  EXPECT_EQ(OpKindText(nodes.Kind(nodes.top)), "top_k F32");
}

TEST(QuarantineTest, Check_WrongProductOfOneType_RefusesOnlyThatType) {
  const Nodes nodes;
  Quarantine quarantine("gpu0");
  quarantine.Add(nodes.Kind(nodes.product_q4), "error 0.31, limit 0.02");
  EXPECT_THAT(quarantine.Check(nodes.graph(), nodes.product_q4),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "gpu0 computed mul_mat Q4_0 wrong in its self-test (error 0.31, limit "
                       "0.02)"));
  EXPECT_OK(quarantine.Check(nodes.graph(), nodes.product_f16));
  EXPECT_OK(quarantine.Check(nodes.graph(), nodes.q4_to_f32));
}

TEST(QuarantineTest, Check_WrongFusedOp_LeavesThePlainOne) {
  const Nodes nodes;
  Quarantine quarantine("gpu0");
  quarantine.Add(nodes.Kind(nodes.weighted_norm), "why");
  EXPECT_THAT(quarantine.Check(nodes.graph(), nodes.weighted_norm),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("fused rms_norm")));
  EXPECT_OK(quarantine.Check(nodes.graph(), nodes.norm));
}

TEST(QuarantineTest, Check_WrongPlainOp_RefusesTheFusedOneToo) {
  const Nodes nodes;
  Quarantine quarantine("gpu0");
  quarantine.Add(nodes.Kind(nodes.norm), "why");
  EXPECT_FALSE(quarantine.Check(nodes.graph(), nodes.norm).ok());
  EXPECT_FALSE(quarantine.Check(nodes.graph(), nodes.weighted_norm).ok());
}

TEST(QuarantineTest, Check_WrongConversionOfTwoTypes_LeavesThoseOfOne) {
  const Nodes nodes;
  Quarantine both("gpu0");
  both.Add(nodes.Kind(nodes.q4_to_f16), "why");
  EXPECT_FALSE(both.Check(nodes.graph(), nodes.q4_to_f16).ok());
  EXPECT_OK(both.Check(nodes.graph(), nodes.q4_to_f32));
  Quarantine one("gpu0");
  one.Add(nodes.Kind(nodes.q4_to_f32), "why");
  EXPECT_FALSE(one.Check(nodes.graph(), nodes.q4_to_f16).ok());
}

TEST(QuarantineTest, Texts_OneKindTwice_KeepTheFirstReason) {
  const Nodes nodes;
  Quarantine quarantine("gpu0");
  EXPECT_TRUE(quarantine.empty());
  EXPECT_THAT(quarantine.Texts(), IsEmpty());
  quarantine.Add(nodes.Kind(nodes.norm), "first");
  quarantine.Add(nodes.Kind(nodes.norm), "second");
  quarantine.Add(nodes.Kind(nodes.top), "third");
  EXPECT_THAT(quarantine.Texts(), ElementsAre("rms_norm F32: first", "top_k F32: third"));
}

}  // namespace
}  // namespace weft
