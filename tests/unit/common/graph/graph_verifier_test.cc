// Random graphs verify; what an enemy makes of them verifies to something sound or is refused.
#include <limits>

#include "common/graph/graph_builder.h"
#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/graph/graph_mutator.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Graph SmallGraph() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId view = builder.View(x, {2, 2, 1, 1}, {4, 16, 32, 32}, 8);
  builder.MarkOutput(builder.Name(builder.Scale(view, 2), "twice"));
  return *std::move(builder).Finish();
}

struct HostileCase {
  const char* what;
  void (*change)(Graph&);
  const char* error;
};

TEST(VerifyGraph, HostileGraphs_AreRefusedByName) {
  static constexpr NodeId kLeafNode{0}, kViewNode{1}, kScaleNode{2};
  const HostileCase cases[] = {
      {"unknown op", [](Graph& g) { g.mutable_node(kScaleNode).op = static_cast<Op>(99); },
       "node 2 (? 'twice'): unknown op"},
      {"unknown type",
       [](Graph& g) { g.mutable_node(kLeafNode).layout.dtype = static_cast<DType>(99); },
       "node 0 (leaf 'x'): unknown type"},
      {"leaf with sources", [](Graph& g) { g.mutable_node(kLeafNode).sources = {kLeafNode}; },
       "no sources"},
      {"leaf without attributes", [](Graph& g) { g.mutable_node(kLeafNode).attributes = {}; },
       "leaf attributes"},
      {"leaf of unknown kind",
       [](Graph& g) {
         g.mutable_node(kLeafNode).attributes = LeafAttributes{static_cast<LeafKind>(9), 0};
       },
       "leaf id"},
      {"negative leaf id",
       [](Graph& g) {
         g.mutable_node(kLeafNode).attributes = LeafAttributes{LeafKind::kInput, -1};
       },
       "leaf id -1"},
      {"strides of a leaf", [](Graph& g) { g.mutable_node(kLeafNode).layout.nb[1] = 8; },
       "a leaf is packed"},
      {"negative extent", [](Graph& g) { g.mutable_node(kLeafNode).layout.ne[1] = -2; },
       "negative extent"},
      {"leaf as view", [](Graph& g) { g.mutable_node(kLeafNode).view_offset = 4; },
       "a leaf is not a view"},
      {"source is itself", [](Graph& g) { g.mutable_node(kScaleNode).sources = {kScaleNode}; },
       "source 2 does not precede it"},
      {"source out of range", [](Graph& g) { g.mutable_node(kScaleNode).sources = {NodeId{77}}; },
       "source 77 does not precede it"},
      {"no source", [](Graph& g) { g.mutable_node(kScaleNode).sources = {kNoNode}; },
       "source -1 does not precede it"},
      {"too many sources",
       [](Graph& g) { g.mutable_node(kScaleNode).sources.assign(1000, kLeafNode); },
       "1000 sources"},
      {"layout of another", [](Graph& g) { g.mutable_node(kScaleNode).layout.ne[0] = 3; },
       "layout is F32 [3, 2], the op gives F32 [2, 2]"},
      {"root of another", [](Graph& g) { g.mutable_node(kViewNode).view_root = NodeId{2}; },
       "wrong view root"},
      {"root out of range", [](Graph& g) { g.mutable_node(kViewNode).view_root = NodeId{-9}; },
       "wrong view root"},
      {"offset of another", [](Graph& g) { g.mutable_node(kViewNode).view_offset = 0; },
       "wrong view root or offset"},
      {"result with a root", [](Graph& g) { g.mutable_node(kScaleNode).view_root = kLeafNode; },
       "is not a view but has a root"},
      {"NaN",
       [](Graph& g) {
         g.mutable_node(kScaleNode).attributes =
             ScaleAttributes{std::numeric_limits<float>::quiet_NaN(), 0};
       },
       "not finite"},
  };
  ASSERT_OK(VerifyGraph(SmallGraph()));
  for (const HostileCase& c : cases) {
    Graph graph = SmallGraph();
    c.change(graph);
    EXPECT_THAT(VerifyGraph(graph),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.error)))
        << c.what;
  }
}

TEST(VerifyGraph, LeafIdUsedTwice_IsRefused) {
  GraphBuilder builder;
  builder.Leaf(LeafKind::kWeight, 3, DType::kF32, {4, 1, 1, 1}, "a");
  builder.Leaf(LeafKind::kInput, 3, DType::kF32, {4, 1, 1, 1}, "b");
  EXPECT_OK(VerifyGraph(builder.graph()));
  builder.Leaf(LeafKind::kWeight, 3, DType::kF32, {4, 1, 1, 1}, "c");
  EXPECT_THAT(VerifyGraph(builder.graph()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("id 3 is used twice")));
}

// The empty tensors whose other extents would overflow if an empty one counted as nothing.
TEST(VerifyGraph, EmptyTensors_DoNotHideHugeOnes) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_FALSE(PackedLayout(DType::kF32, {0, huge, huge, 1}).ok());
  EXPECT_FALSE(PackedLayout(DType::kF32, {huge, 0, huge, 1}).ok());
  EXPECT_FALSE(PackedLayout(DType::kF32, {int64_t{1} << 61, 0, 1, 1}).ok());
  EXPECT_TRUE(PackedLayout(DType::kF32, {huge, 0, 1, 1}).ok());
}

// A graph that still verifies must be sound for all who rely on that: it can be computed, costed
// and printed. The oracle checks every access where it can go wrong (the address sanitizer sees the
// rest).
void CheckMutations(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const Graph graph = MakeRandomGraph(random, 25);
  ASSERT_OK(VerifyGraph(graph));
  ASSERT_EQ(graph, Graph(graph));
  for (int i = 0; i < 200; ++i) {
    Graph mutated = graph;
    const std::string what = MutateGraph(random, mutated);
    if (!VerifyGraph(mutated).ok()) continue;
    SCOPED_TRACE(what);
    EXPECT_EQ(mutated, Graph(mutated));
    EXPECT_FALSE(GraphText(mutated).empty());
    int64_t bytes = 0;
    for (int32_t n = 0; n < mutated.size(); ++n) {
      EXPECT_GE(NodeCost(mutated, NodeId{n}).flops, 0);
      EXPECT_GE(NodeCost(mutated, NodeId{n}).bytes_read, 0);
      bytes += std::min(ByteExtent(mutated.layout(NodeId{n})).value(), int64_t{1} << 30);
    }
    if (bytes > (1 << 20)) continue;
    HostGraph host(mutated);
    FillLeafs(random, mutated, host);
    host.Run().IgnoreError();
  }
}

TEST(VerifyGraph, RandomGraphsAndMutations_AreSoundOrRefused) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < 40; ++i) CheckMutations(seed + i);
}

}  // namespace
}  // namespace weft
