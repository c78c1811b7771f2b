// Random graphs over random devices: placed, cut, planned, run, and equal to the oracle (INV-B7).
#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/scheduler/schedule_fixture.h"

namespace weft {
namespace {

TEST(ScheduleRandom, AnyFleet_EqualsTheOracle) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < 60; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, 40);
    const RandomFleet fleet = MakeRandomFleet(random, static_cast<int>(random.Between(1, 4)));
    const PlanInput input = MakeRandomInput(random, graph, fleet);
    CheckPlanAgainstOracle(random, graph, input, 2);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weft
