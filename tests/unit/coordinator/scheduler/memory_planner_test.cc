#include "coordinator/scheduler/memory_planner.h"

#include <algorithm>

#include "common/base/random.h"
#include "common/graph/graph_builder.h"
#include "coordinator/scheduler/free_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

MemoryPool Pool(int64_t alignment) {
  MemoryPool pool;
  pool.alignment = alignment;
  pool.tensor_bytes = [](const TensorLayout& layout) { return *ByteExtent(layout); };
  return pool;
}

// Everything in one pool.
absl::StatusOr<MemoryPlan> PlanArena(const Graph& graph, const MemoryPool& pool) {
  const std::vector<int32_t> pool_of(graph.nodes().size(), 0);
  return PlanMemory(graph, pool_of, absl::MakeConstSpan(&pool, 1), {});
}

// Spec M.10: a at 0, b at 256, c over b, d over c, high-water 512.
TEST(PlanArena, WorkedExample) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  const NodeId w = g.Leaf(LeafKind::kWeight, 0, DType::kF32, {64, 64, 1, 1}, "w");
  const NodeId a = g.MulMat(w, x);
  const NodeId b = g.Unary(a, UnaryKind::kSilu);
  const NodeId c = g.Add(b, a);
  const NodeId d = g.Scale(c, 2);
  g.MarkOutput(d);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, Pool(32)));
  EXPECT_EQ(plan.places[Index(a)].offset, 0);
  EXPECT_EQ(plan.places[Index(b)].offset, 256);
  EXPECT_EQ(plan.places[Index(c)].offset, 256);
  EXPECT_EQ(plan.places[Index(d)].offset, 256);
  EXPECT_EQ(plan.pools[0].Bytes(), 512);
  EXPECT_EQ(plan.pools[0].lower_bound, 512);
  EXPECT_EQ(plan.places[Index(x)].offset, -1);
}

TEST(PlanArena, View_KeepsItsRootAlive) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  const NodeId a = g.Scale(x, 2);
  const NodeId view = g.View(a, {32, 1, 1, 1}, {4, 128, 128, 128}, 128);
  const NodeId b = g.Scale(x, 3);  // must not take a's place: the view is read below
  const NodeId c = g.Scale(b, 4);
  const NodeId d = g.Add(view, view);
  g.MarkOutput(d);
  g.MarkOutput(c);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, Pool(64)));
  EXPECT_NE(plan.places[Index(b)].offset, plan.places[Index(a)].offset);
  EXPECT_EQ(plan.places[Index(view)].offset, -1);
}

// A random graph of element-wise ops, products and views.
Graph RandomGraph(Random& random) {
  GraphBuilder g;
  std::vector<NodeId> nodes = {g.Leaf(LeafKind::kInput, 0, DType::kF32, {16, 4, 1, 1}, "x"),
                               g.Leaf(LeafKind::kInput, 1, DType::kF32, {16, 4, 1, 1}, "y")};
  const NodeId w = g.Leaf(LeafKind::kWeight, 0, DType::kF32, {16, 16, 1, 1}, "w");
  for (int i = 0; i < 40; ++i) {
    const NodeId a = nodes[random.Between(0, static_cast<int64_t>(nodes.size()) - 1)];
    const NodeId b = nodes[random.Between(0, static_cast<int64_t>(nodes.size()) - 1)];
    NodeId next = kNoNode;
    switch (random.Between(0, 4)) {
      case 0:
        next = g.Add(a, b);
        break;
      case 1:
        next = g.MulMat(w, a);
        break;
      case 2:
        next = g.Reshape(g.Reshape(a, {64, 1, 1, 1}), {16, 4, 1, 1});
        break;
      case 3:
        next = g.Mul(a, b);
        break;
      default:
        next = g.Unary(a, UnaryKind::kSilu);
    }
    nodes.push_back(next);
    if (random.Between(0, 9) == 0) g.MarkOutput(next);
  }
  absl::StatusOr<Graph> graph = std::move(g).Finish();
  EXPECT_OK(graph);
  return *std::move(graph);
}

// INV-C1 by running the plan on symbolic memory: every byte range knows which node wrote it last.
TEST(PlanArena, RandomGraphs_NoReaderFindsAnothersData) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Graph graph = RandomGraph(random);
    ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, Pool(64)));
    ASSERT_OK_AND_ASSIGN(const MemoryPlan again, PlanArena(graph, Pool(64)));
    EXPECT_TRUE(plan == again);
    EXPECT_GE(plan.pools[0].Bytes(), plan.pools[0].lower_bound);
    std::vector<int32_t> owner(static_cast<size_t>(plan.pools[0].Bytes() / 64), -1);
    const auto check = [&](NodeId root) {
      const int64_t offset = plan.places[Index(root)].offset;
      if (offset < 0) return;
      for (int64_t at = offset; at < offset + 256; at += 64) {
        ASSERT_EQ(owner[at / 64], Index(root)) << "node " << Index(root);
      }
    };
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.Executes(NodeId{i})) continue;
      for (const NodeId source : graph.node(NodeId{i}).sources) check(graph.Root(source));
      for (int64_t at = plan.places[i].offset; at < plan.places[i].offset + 256; at += 64)
        owner[at / 64] = i;
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (graph.node(NodeId{i}).output) check(graph.Root(NodeId{i}));
    }
  }
}

TEST(FreeList, RandomUse_MergesBack) {
  constexpr uint64_t kSeed = 5;
  Random random(kSeed);
  FreeList list;
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (int i = 0; i < 3000; ++i) {
    if (taken.empty() || random.Between(0, 2) != 0) {
      const int64_t bytes = random.Between(1, 40);
      const int64_t offset = list.Take(bytes);
      for (const auto& [other, size] : taken) {
        ASSERT_TRUE(offset + bytes <= other || other + size <= offset) << "seed " << kSeed;
      }
      taken.emplace_back(offset, bytes);
    } else {
      const auto index =
          static_cast<size_t>(random.Between(0, static_cast<int64_t>(taken.size()) - 1));
      list.Return(taken[index].first, taken[index].second);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  for (const auto& [offset, bytes] : taken) list.Return(offset, bytes);
  // INV-C4: everything is one block again.
  const int64_t all = list.high_water();
  EXPECT_EQ(list.Take(all), 0);
  EXPECT_EQ(list.high_water(), all);
}

}  // namespace
}  // namespace weft
