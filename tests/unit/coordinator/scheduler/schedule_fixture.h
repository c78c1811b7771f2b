// Plans of random graphs over random devices, run and compared with the oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/random.h"
#include "coordinator/scheduler/execution_plan.h"
#include "tests/support/fake_device.h"

namespace weft {

// A CPU that runs everything, behind accelerators that do not.
struct RandomFleet {
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;  // priority order, the CPU last
};
RandomFleet MakeRandomFleet(Random& random, int fake_count);

// Places for the leafs of `graph`, pins and options. Every leaf that is bound lies on some device.
PlanInput MakeRandomInput(Random& random, const Graph& graph, const RandomFleet& fleet);

// Plans, compiles, verifies and runs `steps` steps; the outputs are bit for bit those of the
// oracle.
void CheckPlanAgainstOracle(Random& random, const Graph& graph, const PlanInput& input, int steps);

}  // namespace weft
