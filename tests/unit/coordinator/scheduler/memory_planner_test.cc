#include "coordinator/scheduler/memory_planner.h"

#include <algorithm>

#include "common/base/random.h"
#include "common/graph/graph_builder.h"
#include "coordinator/scheduler/free_list.h"
#include "coordinator/scheduler/interval_packing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/memory_replay.h"

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
TEST(PlanMemory, WorkedExample) {
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

TEST(PlanMemory, View_KeepsItsRootAlive) {
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

// Pools of random alignment and padding, some with small chunks, the last without reuse; nodes in
// any of them.
struct RandomPools {
  std::vector<MemoryPool> pools;
  std::vector<int32_t> pool_of;

  RandomPools(Random& random, const Graph& graph) {
    const int64_t count = random.Between(1, 3);
    for (int64_t p = 0; p < count; ++p) {
      MemoryPool pool = Pool(int64_t{64} << random.Between(0, 2));
      const int64_t padding = random.Between(0, 1) * random.Between(1, 200);
      pool.tensor_bytes = [padding](const TensorLayout& layout) {
        return *ByteExtent(layout) + padding;
      };
      if (random.Between(0, 1) == 0) pool.max_chunk_bytes = random.Between(512, 2048);
      pool.reuse = p == 0 || random.Between(0, 2) != 0;
      pools.push_back(std::move(pool));
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      pool_of.push_back(static_cast<int32_t>(random.Between(0, count - 1)));
    }
  }
};

// Some nodes that are done with their sources only when a later one runs.
std::vector<LateRead> RandomLateReads(Random& random, const Graph& graph) {
  std::vector<LateRead> reads;
  for (int32_t i = 0; i + 1 < graph.size(); ++i) {
    const auto until = static_cast<int32_t>(random.Between(i + 1, graph.size() - 1));
    if (random.Between(0, 3) != 0) continue;
    if (graph.Executes(NodeId{i}) && graph.Executes(NodeId{until})) {
      reads.push_back({NodeId{i}, NodeId{until}});
    }
  }
  return reads;
}

TEST(PlanMemory, RandomGraphs_NoReaderFindsAnothersData) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Graph graph = RandomGraph(random);
    const RandomPools pools(random, graph);
    MemoryOptions options;
    options.in_place = random.Between(0, 3) != 0;
    if (random.Between(0, 1) == 0) options.late_reads = RandomLateReads(random, graph);
    ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                         PlanMemory(graph, pools.pool_of, pools.pools, options));
    ASSERT_OK_AND_ASSIGN(const MemoryPlan again,
                         PlanMemory(graph, pools.pool_of, pools.pools, options));
    EXPECT_TRUE(plan == again);
    EXPECT_EQ(ReplayMemory(graph, pools.pool_of, pools.pools, options, plan), "");
    EXPECT_TRUE(options.in_place || plan.in_place_count == 0);
  }
}

// Two nodes of 512 bytes each live at once; chunks hold 700.
TEST(PlanMemory, SmallAllocations_GiveSeveralChunks) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {128, 1, 1, 1}, "x");
  const NodeId a = g.Scale(x, 2);
  const NodeId b = g.Scale(x, 3);
  g.MarkOutput(g.Concat(g.Name(a, "a"), b, 1));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  MemoryPool pool = Pool(64);
  pool.max_chunk_bytes = 1024;
  ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, pool));
  EXPECT_EQ(plan.pools[0].chunk_bytes, (std::vector<int64_t>{1024, 1024}));
  EXPECT_EQ(plan.pools[0].lower_bound, 2048);
  pool.max_chunk_bytes = 700;
  EXPECT_EQ(PlanArena(graph, pool).status().code(), absl::StatusCode::kResourceExhausted);
  pool.max_chunk_bytes = 500;
  EXPECT_THAT(
      PlanArena(graph, pool).status().message(),
      testing::HasSubstr("(scale 'a') takes 512 bytes, the largest allocation there is 500"));
}

// What another device copies from is not used again.
TEST(PlanMemory, WithoutReuse_EveryTensorKeepsItsPlace) {
  GraphBuilder g;
  NodeId at = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  for (int i = 0; i < 5; ++i) at = g.Scale(at, 2);
  g.MarkOutput(at);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  MemoryPool pool = Pool(64);
  pool.reuse = false;
  ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, pool));
  EXPECT_EQ(plan.pools[0].Bytes(), 5 * 256);
  EXPECT_EQ(plan.in_place_count, 0);
}

// The ids that a copy of experts asks live until that copy.
TEST(PlanMemory, ExtraReads_KeepATensorAlive) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  const NodeId ids = g.Scale(x, 2);
  const NodeId other = g.Scale(x, 3);
  const NodeId copy = g.Scale(x, 4);
  g.MarkOutput(g.Add(other, copy));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const std::vector<int32_t> pool_of(graph.nodes().size(), 0);
  const std::vector<MemoryPool> pools = {Pool(64)};
  MemoryOptions options;
  ASSERT_OK_AND_ASSIGN(const MemoryPlan without, PlanMemory(graph, pool_of, pools, options));
  EXPECT_EQ(without.places[Index(other)].offset, without.places[Index(ids)].offset);
  options.extra_reads = {{copy, ids}};
  ASSERT_OK_AND_ASSIGN(const MemoryPlan with, PlanMemory(graph, pool_of, pools, options));
  EXPECT_NE(with.places[Index(other)].offset, with.places[Index(ids)].offset);
  EXPECT_EQ(ReplayMemory(graph, pool_of, pools, options, with), "");
  EXPECT_NE(ReplayMemory(graph, pool_of, pools, options, without), "");
}

// What is still summed up while others compute is not given to them.
TEST(PlanMemory, LateReads_KeepSourcesAlive) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  const NodeId term = g.Scale(x, 2);
  const NodeId sum = g.Reshape(g.SumRows(g.Reshape(term, {1, 64, 1, 1})), {64, 1, 1, 1});
  const NodeId other = g.Scale(x, 3);
  const NodeId reader = g.Mul(other, sum);
  g.MarkOutput(reader);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const std::vector<int32_t> pool_of(graph.nodes().size(), 0);
  const std::vector<MemoryPool> pools = {Pool(64)};
  MemoryOptions options;
  ASSERT_OK_AND_ASSIGN(const MemoryPlan without, PlanMemory(graph, pool_of, pools, options));
  EXPECT_EQ(without.places[Index(other)].offset, without.places[Index(term)].offset);
  options.late_reads = {{graph.Root(sum), reader}};
  ASSERT_OK_AND_ASSIGN(const MemoryPlan with, PlanMemory(graph, pool_of, pools, options));
  EXPECT_NE(with.places[Index(other)].offset, with.places[Index(term)].offset);
  EXPECT_EQ(ReplayMemory(graph, pool_of, pools, options, with), "");
  EXPECT_NE(ReplayMemory(graph, pool_of, pools, options, without), "");
}

// The replay itself finds faults.
TEST(ReplayMemory, FindsOverlapsAndWrongSizes) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 1, 1, 1}, "x");
  const NodeId a = g.Scale(x, 2);
  const NodeId b = g.Scale(x, 3);
  const NodeId c = g.MulMat(a, b);
  g.MarkOutput(c);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const std::vector<int32_t> pool_of(graph.nodes().size(), 0);
  const std::vector<MemoryPool> pools = {Pool(64)};
  ASSERT_OK_AND_ASSIGN(const MemoryPlan good, PlanMemory(graph, pool_of, pools, {}));
  EXPECT_EQ(ReplayMemory(graph, pool_of, pools, {}, good), "");
  const auto fault = [&](const std::function<void(MemoryPlan&)>& change) {
    MemoryPlan plan = good;
    change(plan);
    return ReplayMemory(graph, pool_of, pools, {}, plan);
  };
  EXPECT_THAT(fault([&](MemoryPlan& plan) { plan.pools[0].chunk_bytes[0] += 64; }),
              testing::HasSubstr("of which"));
  EXPECT_THAT(
      fault([&](MemoryPlan& plan) { plan.places[Index(a)].offset = plan.places[Index(b)].offset; }),
      testing::HasSubstr("writes over node"));
  EXPECT_THAT(fault([&](MemoryPlan& plan) { plan.places[Index(a)].offset += 32; }),
              testing::HasSubstr("misaligned"));
  EXPECT_THAT(fault([&](MemoryPlan& plan) { plan.pools[0].lower_bound -= 64; }),
              testing::HasSubstr("lower bound"));
  EXPECT_THAT(fault([&](MemoryPlan& plan) { plan.places[Index(a)].chunk = 1; }),
              testing::HasSubstr("in no chunk"));
}

// --- Packing and free lists ---

TEST(PackIntervals, RandomLifetimes_NeverOverlap) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<Lifetime> lifetimes(static_cast<size_t>(random.Between(0, 40)));
    std::vector<int64_t> live(50);
    for (Lifetime& life : lifetimes) {
      life.first = static_cast<int32_t>(random.Between(0, 49));
      life.last = static_cast<int32_t>(random.Between(life.first, 49));
      life.bytes = random.Between(1, 100);
      for (int32_t step = life.first; step <= life.last; ++step) live[step] += life.bytes;
    }
    const Packing packing = PackIntervals(lifetimes, 50);
    EXPECT_GE(packing.bytes, *std::max_element(live.begin(), live.end())) << "seed " << seed;
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      EXPECT_GE(packing.offsets[i], 0);
      EXPECT_LE(packing.offsets[i] + lifetimes[i].bytes, packing.bytes);
      for (size_t k = 0; k < i; ++k) {
        const bool together =
            lifetimes[i].first <= lifetimes[k].last && lifetimes[k].first <= lifetimes[i].last;
        const bool apart = packing.offsets[i] + lifetimes[i].bytes <= packing.offsets[k] ||
                           packing.offsets[k] + lifetimes[k].bytes <= packing.offsets[i];
        EXPECT_TRUE(!together || apart) << "seed " << seed << ": " << i << ", " << k;
      }
    }
  }
}

// Taken in order, the second and third tensor would come to lie behind the first, whose 64 bytes
// neither of them fits into.
TEST(PlanMemory, GapsOfTheOrder_ArePackedAway) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {16, 1, 1, 1}, "x");
  const NodeId w = g.Leaf(LeafKind::kWeight, 0, DType::kF32, {16, 8, 1, 1}, "w");
  const NodeId small = g.Scale(x, 2);
  const NodeId large = g.Repeat(small, {16, 32, 1, 1});
  g.MarkOutput(g.MulMat(w, large));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanArena(graph, Pool(64)));
  EXPECT_EQ(plan.pools[0].lower_bound, 2048 + 1024);
  EXPECT_EQ(plan.pools[0].Bytes(), 2048 + 1024);
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
  EXPECT_TRUE(list.IsWhole());
  const int64_t all = list.high_water();
  EXPECT_EQ(list.Take(all), 0);
  EXPECT_EQ(list.high_water(), all);
}

}  // namespace
}  // namespace weft
