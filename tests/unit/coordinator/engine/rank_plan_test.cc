// Plans over ranks for models and fleets of real sizes, on devices that are not there.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/device/null_device.h"
#include "coordinator/engine/rank_groups.h"
#include "coordinator/engine/step_plan.h"
#include "coordinator/placement/model_placement.h"
#include "gtest/gtest.h"
#include "tests/support/sparse_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

// Machines "w0", "w1", ... with a GPU each, whose names may be long, and the coordinator.
class NullFleet {
 public:
  NullFleet(int ranks, size_t name_length) {
    for (int r = 0; r < ranks; ++r) {
      NullDeviceOptions options;
      options.host = absl::StrCat("w", r);
      options.name = absl::StrCat(options.host, ".gpu0");
      if (options.name.size() < name_length) {
        options.name.append(name_length - options.name.size(), 'n');
      }
      Add(options);
    }
    NullDeviceOptions cpu;
    cpu.kind = DeviceKind::kCpu;
    cpu.name = "local.cpu0";
    Add(cpu);
  }

  const std::vector<Device*>& devices() const { return list_; }
  ProcessGroup& processes() { return *processes_; }
  void Finish() { processes_ = std::make_unique<ProcessGroup>(members_); }

 private:
  void Add(const NullDeviceOptions& options) {
    devices_.push_back(std::make_unique<NullDevice>(options));
    list_.push_back(devices_.back().get());
    members_.push_back({options.host, nullptr});
  }

  std::vector<std::unique_ptr<NullDevice>> devices_;
  std::vector<Device*> list_;
  std::vector<GroupMember> members_;
  std::unique_ptr<ProcessGroup> processes_;
};

struct Planned {
  StepPlan step;
  HeldSlices held;
  double seconds = 0;
};

absl::StatusOr<Planned> PlanRanks(const Model& model, NullFleet& fleet, int64_t tensor_ranks,
                                  int64_t tokens) {
  fleet.Finish();
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  PlacementOptions placement;
  placement.split_mode = SplitMode::kTensor;
  placement.tensor_ranks = tensor_ranks;
  PlacedDevices placed;
  placed.devices = fleet.devices();
  ASSIGN_OR_RETURN(const auto groups, GroupDevices(placed, placement));
  ASSIGN_OR_RETURN(placed.placement, PlaceModel(model, placed.devices, placement));
  Planned planned;
  ASSIGN_OR_RETURN(planned.held, HoldSlices(model, placed));
  GraphShape shape;
  shape.tokens = tokens;
  shape.outputs = 1;
  shape.pages_per_sequence = 256;
  shape.pages = 257;
  shape.context = 4096;
  ASSIGN_OR_RETURN(const ModelGraph graph, model.BuildGraph(shape));
  ASSIGN_OR_RETURN(planned.step, PlanStep(graph.graph, placed, planned.held, fleet.processes(),
                                          tokens, PlanOptions()));
  planned.seconds = std::chrono::duration<double>(clock.Now() - start).count();
  return planned;
}

int64_t ArenaBytes(const Program& program) {
  int64_t bytes = 0;
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::kArena || slot.kind == SlotKind::kCrossing) bytes += slot.bytes;
  }
  return bytes;
}

// Decision 17 and INV-D6: weights are there once, but for what every rank holds; each rank's memory
// is planned from its own slices.
void CheckSizes(const Model& model, const Planned& planned, int ranks) {
  int64_t whole = 0;
  int64_t mirrored = 0;
  for (size_t w = 0; w < model.weights().size(); ++w) {
    const int64_t bytes = *ByteExtent(model.weights()[w].layout);
    whole += bytes;
    if (planned.held.layout.weights[w].state.mirrored()) mirrored += bytes;
  }
  int64_t held = 0;
  for (const WeightSlice& slice : planned.held.weights) held += TotalBytes(slice.runs);
  // Keys and values of KV heads that two ranks share are there twice.
  EXPECT_LE(held, whole + mirrored * ranks + whole / 4);
  EXPECT_GE(held, whole);
}

TEST(RankPlan, FortyRanks_EachHasItsPart) {
  const SparseModel sparse("8b");
  NullFleet fleet(40, 0);
  ASSERT_OK_AND_ASSIGN(const Planned planned, PlanRanks(sparse.model(), fleet, 0, 1));
  std::printf("40 ranks, 32 layers: planned in %.2f s\n", planned.seconds);
  CheckSizes(sparse.model(), planned, 40);
  ASSERT_EQ(planned.step.program.processes.size(), 41u);
  for (size_t p = 0; p < 40; ++p) {
    const Program& program = planned.step.program.processes[p].program;
    ASSERT_EQ(program.streams.size(), 1u) << p;
    ASSERT_OK(VerifyProgram(program)) << p;
  }
}

TEST(RankPlan, SeventyBillionShape_EightRanks) {
  const SparseModel sparse("8b", 80);
  NullFleet one(2, 0);
  NullFleet fleet(8, 0);
  ASSERT_OK_AND_ASSIGN(const Planned few, PlanRanks(sparse.model(), one, 0, 512));
  ASSERT_OK_AND_ASSIGN(const Planned planned, PlanRanks(sparse.model(), fleet, 0, 512));
  std::printf("8 ranks, 80 layers: planned in %.2f s\n", planned.seconds);
  CheckSizes(sparse.model(), planned, 8);
  // A quarter of the heads and columns: less memory to compute in, never the whole's.
  EXPECT_LT(ArenaBytes(planned.step.program.processes[0].program),
            ArenaBytes(few.step.program.processes[0].program));
}

TEST(RankPlan, LongNames_SixteenRanks) {
  const SparseModel sparse("160m");
  NullFleet fleet(16, 200);
  ASSERT_OK_AND_ASSIGN(const Planned planned, PlanRanks(sparse.model(), fleet, 8, 16));
  CheckSizes(sparse.model(), planned, 8);
  for (const ProcessProgram& process : planned.step.program.processes) {
    if (process.program.streams.empty()) continue;
    EXPECT_OK(VerifyProgram(process.program)) << process.host;
  }
}

}  // namespace
}  // namespace weft
