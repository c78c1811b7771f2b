// Arenas of model graphs are within a tenth of the lower bound, the most bytes that live at once.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/placement/model_placement.h"
#include "gtest/gtest.h"
#include "tests/golden/plans/plan_cases.h"
#include "tests/support/sparse_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

void ExpectTight(const std::string& what, const ExecutionPlan& plan) {
  for (size_t p = 0; p < plan.memory.pools.size(); ++p) {
    const PoolPlan& pool = plan.memory.pools[p];
    // A few tensors of the least size are not worth a thought.
    const int64_t limit = std::max(pool.lower_bound + pool.lower_bound / 10, int64_t{4096});
    EXPECT_LE(pool.Bytes(), limit)
        << what << ", pool " << p << ": lower bound " << pool.lower_bound;
  }
}

TEST(PlanMemory, GoldenModels_WithinATenth) {
  for (const PlanCase& plan_case : PlanCases()) {
    ASSERT_OK(PlanCaseText(
        plan_case, [&](const PlanPhase& phase, const PlanContext&, const ExecutionPlan& plan) {
          ExpectTight(absl::StrCat(plan_case.name, " ", phase.tokens), plan);
        }));
  }
}

struct Fleet {
  std::string name;
  std::vector<RigDevice> devices;
  int64_t n_gpu_layers;
};

TEST(PlanMemory, RealShapes_WithinATenth) {
  const std::vector<Fleet> fleets = {{"cpu", {Cpu("local.cpu0")}, -1},
                                     {"gpu", OneGpu(), -1},
                                     {"half", OneGpu(), 8},
                                     {"offload", OneGpu(), 0},
                                     {"workers", TwoWorkers(), -1}};
  for (const char* shape : {"1b", "8b"}) {
    const SparseModel sparse(shape);
    for (const Fleet& fleet : fleets) {
      const PlanRig rig(fleet.devices);
      PlacedDevices placed;
      placed.devices = rig.input.devices;
      PlacementOptions placement;
      placement.n_gpu_layers = fleet.n_gpu_layers;
      ASSERT_OK_AND_ASSIGN(placed.placement, PlaceModel(sparse.model(), placed.devices, placement));
      for (const int64_t tokens : {1, 32, 512}) {
        const auto see = [&](const PlanPhase&, const PlanContext&, const ExecutionPlan& plan) {
          ExpectTight(absl::StrCat(shape, " ", fleet.name, " ", tokens), plan);
        };
        ASSERT_OK(PlanOnePhase(sparse.model(), placed, {tokens}, {}, see));
      }
    }
  }
}

}  // namespace
}  // namespace weft
