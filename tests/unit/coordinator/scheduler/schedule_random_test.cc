// Random graphs over random machines: placed, cut, planned, run, and equal to the oracle (INV-B7).
// Registered once more with ten thousand seeds for the nightly run.
#include <algorithm>
#include <cstdio>

#include "common/graph/graph_builder.h"
#include "coordinator/scheduler/execution_plan.h"
#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/scheduler/random_fleet.h"
#include "tests/unit/coordinator/scheduler/schedule_fixture.h"

namespace weft {
namespace {

void Print(const ScheduleStatistics& s) {
  std::printf(
      "%lld plans, %lld splits, %lld weights staged (%lld of experts), %lld further chunks, "
      "%lld pipelined, %lld nodes fused, %lld resolved, %lld tensors observed, %lld steps ended, "
      "%lld fleets with %lld edges, %lld copy weights between hosts\n",
      static_cast<long long>(s.plans), static_cast<long long>(s.splits),
      static_cast<long long>(s.staged), static_cast<long long>(s.experts),
      static_cast<long long>(s.chunks), static_cast<long long>(s.pipelined),
      static_cast<long long>(s.fused), static_cast<long long>(s.resolved),
      static_cast<long long>(s.observed), static_cast<long long>(s.aborted),
      static_cast<long long>(s.fleets), static_cast<long long>(s.edges),
      static_cast<long long>(s.refused));
}

// Two to five devices, most of them with some delay, and now and then many.
TEST(ScheduleRandom, AnyFleet_EqualsTheOracle) {
  const uint64_t seed = TestSeed(1);
  const uint64_t count = TestCount(300);
  ScheduleStatistics statistics;
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i << " WEFT_TEST_COUNT=1");
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(5, 60)));
    FleetShape shape;
    const bool many = random.Between(0, 19) == 0;
    shape.devices = static_cast<int>(many ? random.Between(6, 40) : random.Between(2, 5));
    shape.buffer_bytes = std::max(LargestTensor(graph) + 1024, InputSum(graph));
    shape.delays = !many;
    const RandomFleet fleet = MakeRandomFleet(random, shape);
    const PlanInput input = MakeRandomInput(random, graph, fleet, random.Between(0, 2) == 0);
    CheckPlanAgainstOracle(random, input, 6, statistics);
    if (HasFailure()) return;
  }
  Print(statistics);
  if (count < 300) return;
  EXPECT_EQ(statistics.causes.size(), static_cast<size_t>(Cause::kFirst));  // all
  EXPECT_GT(statistics.staged, 0);
  EXPECT_GT(statistics.experts, 0);
  EXPECT_GT(statistics.pipelined, 0);
  EXPECT_GT(statistics.fused, 0);
  EXPECT_GT(statistics.resolved, 0);
  EXPECT_GT(statistics.aborted, 0);
  EXPECT_GT(statistics.fleets, 0);
  EXPECT_GT(statistics.edges, 0);
}

// Weights lie on the devices one after another, in the order of their first readers, as layers do;
// so few plans want a weight of another host.
void PlaceInStages(const Graph& graph, PlanInput& input) {
  const auto count = static_cast<int32_t>(input.devices.size());
  for (int32_t i = graph.size() - 1; i >= 0; --i) {
    for (const NodeId source : graph.node(NodeId{i}).sources) {
      const LeafAttributes* leaf = graph.leaf(source);
      if (leaf == nullptr || leaf->kind != LeafKind::kWeight) continue;
      input.leafs[Index(source)].type = &input.devices[i * count / graph.size()]->buffer_type();
    }
  }
  input.pins.clear();
}

TEST(ScheduleRandom, FleetsInStages_EqualTheOracle) {
  const uint64_t seed = TestSeed(500000);
  const uint64_t count = TestCount(150);
  ScheduleStatistics statistics;
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i << " WEFT_TEST_COUNT=1");
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(20, 60)));
    FleetShape shape;
    shape.devices = static_cast<int>(random.Between(2, 6));
    shape.buffer_bytes = std::max(LargestTensor(graph) + 1024, InputSum(graph));
    const RandomFleet fleet = MakeRandomFleet(random, shape);
    PlanInput input = MakeRandomInput(random, graph, fleet, random.Between(0, 2) == 0);
    PlaceInStages(graph, input);
    CheckPlanAgainstOracle(random, input, 6, statistics);
    if (HasFailure()) return;
  }
  Print(statistics);
  if (count < 150) return;
  EXPECT_GT(statistics.fleets, 0);
  EXPECT_GT(statistics.edges, 0);
}

// Planning alone: larger graphs, up to 40 devices, allocations so small that arenas have several
// chunks.
TEST(ScheduleRandom, LargeFleets_PlansWithoutFault) {
  const uint64_t seed = TestSeed(100000);
  const uint64_t count = TestCount(200);
  ScheduleStatistics statistics;
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i << " WEFT_TEST_COUNT=1");
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(1, 300)));
    FleetShape shape;
    shape.devices = static_cast<int>(random.Between(1, 40));
    shape.buffer_bytes = LargestTensor(graph) + 512;
    const RandomFleet fleet = MakeRandomFleet(random, shape);
    const PlanInput input = MakeRandomInput(random, graph, fleet, random.Between(0, 2) == 0);
    CheckPlan(random, input, statistics);
    if (HasFailure()) return;
  }
  Print(statistics);
  if (count < 200) return;
  EXPECT_GT(statistics.chunks, 0);
}

// The graph with a view that shows all of it between a result and some of its readers; node_of maps
// the nodes of `graph`.
Graph WithViews(Random& random, const Graph& graph, std::vector<NodeId>& node_of) {
  GraphBuilder builder;
  for (int32_t i = 0; i < graph.size(); ++i) {
    Node node = graph.node(NodeId{i});
    for (NodeId& source : node.sources) {
      const bool may_view = graph.Executes(NodeId{i}) && graph.Executes(source) &&
                            graph.layout(source).dtype == DType::kF32 &&
                            !GetOpInfo(node.op).writes_source;
      const Extents ne = graph.layout(source).ne;
      source = node_of[Index(source)];
      if (may_view && random.Between(0, 2) == 0) source = builder.Reshape(source, ne);
    }
    if (node.view_root != kNoNode) node.view_root = node_of[Index(node.view_root)];
    Graph extended = builder.graph();
    node_of.push_back(extended.Append(std::move(node)));
    builder = GraphBuilder(std::move(extended));
  }
  return *std::move(builder).Finish();
}

PlanInput OverViews(const PlanInput& input, const Graph& viewed,
                    const std::vector<NodeId>& node_of) {
  PlanInput other = input;
  other.graph = &viewed;
  other.leafs.assign(viewed.nodes().size(), {});
  for (size_t node = 0; node < node_of.size(); ++node) {
    other.leafs[Index(node_of[node])] = input.leafs[node];
  }
  for (Pin& pin : other.pins) pin.node = node_of[Index(pin.node)];
  for (NodeId& id : other.options.observed) id = node_of[Index(id)];
  return other;
}

// INV-B12: where it is cut, and what is copied, does not depend on views of whole tensors.
TEST(ScheduleRandom, InsertedViews_LeaveTheCutAlone) {
  const uint64_t seed = TestSeed(300000);
  const uint64_t count = std::min<uint64_t>(TestCount(100), 1000);
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i << " WEFT_TEST_COUNT=1");
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(1, 60)));
    FleetShape shape;
    shape.devices = static_cast<int>(random.Between(1, 8));
    shape.buffer_bytes = LargestTensor(graph) + 512;
    const RandomFleet fleet = MakeRandomFleet(random, shape);
    const PlanInput input = MakeRandomInput(random, graph, fleet, false);
    std::vector<NodeId> node_of;
    const Graph viewed = WithViews(random, graph, node_of);
    const PlanInput other = OverViews(input, viewed, node_of);
    ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
    ASSERT_OK_AND_ASSIGN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
    ASSERT_OK_AND_ASSIGN(const PlanContext other_context, PlanContext::Create(other));
    ASSERT_OK_AND_ASSIGN(const ExecutionPlan other_plan, MakeExecutionPlan(other_context, {}));
    EXPECT_EQ(other_plan.plan.splits.size(), plan.plan.splits.size());
    EXPECT_EQ(other_plan.plan.replicas.size(), plan.plan.replicas.size());
    for (size_t node = 0; node < node_of.size(); ++node) {
      EXPECT_EQ(other_plan.plan.assignments[Index(node_of[node])], plan.plan.assignments[node]);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weft
