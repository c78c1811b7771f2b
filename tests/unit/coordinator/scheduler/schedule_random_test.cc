// Random graphs over random machines: placed, cut, planned, run, and equal to the oracle (INV-B7).
// Registered once more with ten thousand seeds for the nightly run.
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/scheduler/random_fleet.h"
#include "tests/unit/coordinator/scheduler/schedule_fixture.h"

namespace weft {
namespace {

void Print(const ScheduleStatistics& s) {
  std::printf(
      "%lld plans, %lld splits, %lld weights staged (%lld of experts), %lld further chunks, "
      "%lld pipelined, %lld nodes fused, %lld resolved, %lld tensors observed, %lld steps ended\n",
      static_cast<long long>(s.plans), static_cast<long long>(s.splits),
      static_cast<long long>(s.staged), static_cast<long long>(s.experts),
      static_cast<long long>(s.chunks), static_cast<long long>(s.pipelined),
      static_cast<long long>(s.fused), static_cast<long long>(s.resolved),
      static_cast<long long>(s.observed), static_cast<long long>(s.aborted));
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

}  // namespace
}  // namespace weft
