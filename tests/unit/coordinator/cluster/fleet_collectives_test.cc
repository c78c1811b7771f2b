// Ranks on workers and on the coordinator, over their real control and data planes.
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cpu/cpu_device.h"
#include "common/graph/graph_builder.h"
#include "common/program/local_program_host.h"
#include "coordinator/cluster/fleet.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/scheduler/program_compiler.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "worker/worker.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 5000;  // more than travels at once
constexpr int kLayers = 4;

// Layers of: (rank + 1) times what each rank has, summed over the ranks, halved.
Graph LayersOfRanks(int32_t ranks, PlanInput& input) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {kWidth, 1, 1, 1}, "x");
  std::vector<NodeId> values(ranks, x);
  for (int32_t l = 0; l < kLayers; ++l) {
    for (int32_t r = 0; r < ranks; ++r) {
      values[r] = g.Scale(values[r], static_cast<float>(r + 1));
      input.pins.push_back({values[r], r});
    }
    for (int32_t r = 0; r < ranks; ++r) {
      values[r] = g.Make(Op::kAllReduce, AllReduceAttributes{{l, 0}, DType::kF32}, {values[r]});
      input.pins.push_back({values[r], r});
      values[r] = g.Scale(values[r], 0.5f);
      input.pins.push_back({values[r], r});
    }
  }
  for (int32_t r = 0; r < ranks; ++r) g.MarkOutput(values[r]);
  return *std::move(g).Finish();
}

class FleetCollectivesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    FleetOptions options;
    options.transport = GetParam();
    for (int i = 0; i < 2; ++i) {
      WorkerOptions worker;
      worker.listen = "unix:" + folder_.File(absl::StrCat("w", i, ".sock"));
      worker.threads = 1;
      worker.transport = GetParam();
      ASSERT_OK_AND_ASSIGN(auto started, Worker::Start(worker, nullptr, logger_));
      workers_.push_back(std::move(started));
      options.workers.push_back(worker.listen);
    }
    ASSERT_OK_AND_ASSIGN(fleet_, Fleet::Open(options, logger_));
    ASSERT_OK_AND_ASSIGN(cpu_, CpuDevice::Create(CpuDeviceOptions()));
    LocalProgramHostOptions local;
    local.devices = {cpu_.get()};
    local.edges = &fleet_->edges();
    local.collectives = &fleet_->collectives();
    ASSERT_OK_AND_ASSIGN(local_, LocalProgramHost::Create(local));
    std::vector<GroupMember> members;
    for (int32_t i = 0; i < 2; ++i) {
      members.push_back({fleet_->hosts()[i], &fleet_->link().host(i), true});
    }
    members.push_back({fleet_->hosts().back(), local_.get(), false});
    group_ = std::make_unique<ProcessGroup>(std::move(members));
    Instantiate();
  }

  void Instantiate() {
    PlanInput input;
    input.devices = fleet_->devices();
    input.devices.push_back(cpu_.get());
    ranks_ = static_cast<int32_t>(input.devices.size());
    input.communicators.emplace_back(ranks_);
    std::iota(input.communicators[0].begin(), input.communicators[0].end(), 0);
    const Graph graph = LayersOfRanks(ranks_, input);
    input.graph = &graph;
    input.leafs.resize(graph.nodes().size());
    ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
    ASSERT_OK_AND_ASSIGN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
    ASSERT_OK_AND_ASSIGN(FleetProgram fleet, group_->Compile(context, plan));
    ASSERT_OK_AND_ASSIGN(const ProgramId id, group_->Install(std::move(fleet)));
    ASSERT_OK_AND_ASSIGN(instance_, group_->Instantiate(id, {}));
  }

  absl::Status Launch(int64_t step) {
    const std::vector<float> x(kWidth, static_cast<float>(step));
    std::vector<uint8_t> bytes(x.size() * sizeof(float));
    std::memcpy(bytes.data(), x.data(), bytes.size());
    StepInput input;
    input.step = step;
    input.inputs = {bytes};
    input.deadline = Late();
    return group_->Launch(instance_, input);
  }
  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

  TemporaryFolder folder_;
  Logger logger_{"test", LogLevel::kError};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<CpuDevice> cpu_;
  std::unique_ptr<LocalProgramHost> local_;
  std::unique_ptr<ProcessGroup> group_;
  int32_t ranks_ = 0;
  InstanceId instance_{};
};

TEST_P(FleetCollectivesTest, Steps_AllRanksAgree) {
  const float factor = static_cast<float>(ranks_ * (ranks_ + 1)) / 4;
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_OK(Launch(step));
    ASSERT_OK_AND_ASSIGN(const StepOutput output, group_->Await(step, Late()));
    ASSERT_EQ(static_cast<int32_t>(output.outputs.size()), ranks_);
    float want = static_cast<float>(step);
    for (int l = 0; l < kLayers; ++l) want *= factor;
    for (const std::vector<uint8_t>& bytes : output.outputs) {
      std::vector<float> values(kWidth);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      ASSERT_EQ(values, std::vector<float>(kWidth, want)) << "step " << step;
    }
  }
}

TEST_P(FleetCollectivesTest, LostWorker_EndsTheStep) {
  ASSERT_OK(Launch(1));
  ASSERT_OK(group_->Await(1, Late()));
  workers_[1].reset();
  const absl::Status launched = Launch(2);
  const absl::Status status = launched.ok() ? group_->Await(2, Late()).status() : launched;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("w1")));
}

INSTANTIATE_TEST_SUITE_P(Transports, FleetCollectivesTest, ::testing::Values("ucx", "grpc"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace weft
