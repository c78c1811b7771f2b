// Models over several processes, each a host with its own devices: the same bits as one process
// that holds them all, one hand-off per boundary, and errors instead of hangs.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "common/program/loopback_edges.h"
#include "coordinator/engine/generator.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/gate.h"

namespace weft {
namespace {

using testing::HasSubstr;

RunnerOptions Options(int64_t ubatch, int64_t sequences = 1) {
  RunnerOptions options;
  options.context = 128;
  options.ubatch = ubatch;
  options.sequences = sequences;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  return options;
}

// A golden model with equal shares of its layers on workers "w0", "w1", ... and a coordinator
// without any.
class Fleet {
 private:
  // Outlive what runs on them.
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<CpuDevice>> cpus_;
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::vector<Device*> devices_;
  std::vector<std::string> hosts_;
  SystemClock clock_;

 public:
  using Hook = std::function<absl::Status(const Graph&, NodeId)>;

  // Workers with a CPU each.
  absl::Status Open(const std::string& name, int workers) {
    golden = ReadGoldenModel(TestDataFolder() + "/models/" + name);
    ASSIGN_OR_RETURN(file_, GgufFile::Open(golden.model_path));
    ASSIGN_OR_RETURN(model_, Model::Create(*file_));
    for (int w = 0; w <= workers; ++w) {
      CpuDeviceOptions options;
      options.host = w == workers ? "local" : absl::StrCat("w", w);
      options.name = absl::StrCat(options.host, ".cpu0");
      options.instruction_set = BestInstructionSet();
      ASSIGN_OR_RETURN(cpus_.emplace_back(), CpuDevice::Create(options));
      devices_.push_back(cpus_.back().get());
      hosts_.push_back(options.host);
    }
    return absl::OkStatus();
  }

  // Two workers with a fake accelerator and a CPU each.
  absl::Status OpenFakes(const std::string& name, std::vector<Hook> hooks) {
    RETURN_IF_ERROR(Open(name, static_cast<int>(hooks.size())));
    for (size_t w = 0; w < hooks.size(); ++w) {
      FakeDeviceOptions options;
      options.host = hosts_[w];
      options.name = absl::StrCat(options.host, ".gpu0");
      options.before_node = std::move(hooks[w]);
      fakes_.push_back(std::make_unique<FakeDevice>(std::move(options)));
      devices_.insert(devices_.begin() + static_cast<int64_t>(w), fakes_.back().get());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlacedDevices> Place() const {
    PlacedDevices placed;
    placed.devices = devices_;
    PlacementOptions placement;
    const size_t shares = fakes_.empty() ? cpus_.size() - 1 : fakes_.size();
    placement.tensor_split.assign(shares, 1);
    ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model_, devices_, placement));
    return placed;
  }

  absl::Status StartIn(ProcessGroup& other, const RunnerOptions& options) {
    ASSIGN_OR_RETURN(const PlacedDevices placed, Place());
    ASSIGN_OR_RETURN(runner, ModelRunner::Create(*model_, placed, other, clock_, options));
    return absl::OkStatus();
  }

  // In a process of the first host alone.
  absl::Status StartAlone(const RunnerOptions& options) {
    RETURN_IF_ERROR(AddProcess({devices_[0]}, nullptr));
    group = std::make_unique<ProcessGroup>(
        std::vector<GroupMember>{{hosts_[0], processes.back().get()}});
    return StartIn(*group, options);
  }

  // In a process per host, or all in one.
  absl::Status Start(const RunnerOptions& options, bool apart) {
    ASSIGN_OR_RETURN(const PlacedDevices placed, Place());
    layer_devices = placed.placement.layer_devices;
    if (!apart) {
      RETURN_IF_ERROR(AddProcess(devices_, nullptr));
      ASSIGN_OR_RETURN(runner,
                       ModelRunner::Create(*model_, placed, *processes.back(), clock_, options));
      return absl::OkStatus();
    }
    edges = std::make_unique<LoopbackEdges>(
        LoopbackOptions{.processes = static_cast<int32_t>(hosts_.size())});
    std::vector<GroupMember> members;
    for (size_t p = 0; p < hosts_.size(); ++p) {
      std::vector<Device*> mine;
      for (Device* device : devices_) {
        if (device->host() == hosts_[p]) mine.push_back(device);
      }
      RETURN_IF_ERROR(AddProcess(std::move(mine), &edges->port(static_cast<int32_t>(p))));
      members.push_back({hosts_[p], processes.back().get()});
    }
    group = std::make_unique<ProcessGroup>(std::move(members));
    return StartIn(*group, options);
  }

  std::vector<float> Logits(absl::Span<const int32_t> tokens) {
    runner->Truncate(0, 0);
    const auto logits = Prefill(*runner, tokens, 0, true);
    EXPECT_OK(logits);
    return logits.ok() ? *logits : std::vector<float>();
  }

  std::vector<int32_t> Continue(absl::Span<const int32_t> tokens, int64_t count) {
    GenerateCallbacks callbacks;
    callbacks.choose = [](absl::Span<const float> row) -> absl::StatusOr<int32_t> {
      return ArgMax(row);
    };
    const auto result = Generate(*runner, clock_, tokens, count, callbacks);
    EXPECT_OK(result);
    return result.ok() ? result->tokens : std::vector<int32_t>();
  }

  int64_t n_layer() const { return model_->hyperparameters().n_layer; }

  GoldenModel golden;
  std::function<void(size_t process)> on_finished;
  std::unique_ptr<LoopbackEdges> edges;  // outlive the processes
  std::vector<std::unique_ptr<LocalProgramHost>> processes;
  std::unique_ptr<ProcessGroup> group;
  std::unique_ptr<ModelRunner> runner;
  std::vector<int32_t> layer_devices;

 private:
  absl::Status AddProcess(std::vector<Device*> devices, EdgePort* port) {
    LocalProgramHostOptions options;
    options.devices = std::move(devices);
    options.edges = port;
    if (on_finished) {
      options.on_finished = [this, process = processes.size()](int64_t) { on_finished(process); };
    }
    ASSIGN_OR_RETURN(processes.emplace_back(), LocalProgramHost::Create(std::move(options)));
    return absl::OkStatus();
  }
};

// From each worker one message per step to the next, and no others.
void CheckHandOffs(Fleet& fleet, int workers, const std::string& what) {
  const int64_t steps = fleet.runner->counters().steps;
  for (int from = 0; from <= workers; ++from) {
    EXPECT_EQ(fleet.edges->waiting(from), 0) << what;
    for (int to = 0; to <= workers; ++to) {
      const bool boundary = to == from + 1 && to < workers;
      EXPECT_EQ(fleet.edges->traffic(from, to).messages, boundary ? steps : 0)
          << what << ", " << from << " to " << to;
    }
    const ProcessStatistics& statistics = fleet.group->statistics()[from];
    EXPECT_EQ(statistics.steps, from < workers ? steps : 0) << what;
    EXPECT_EQ(statistics.messages, from + 1 < workers ? steps : 0) << what;
  }
}

class FleetModelTest : public testing::TestWithParam<const char*> {};

TEST_P(FleetModelTest, AnyNumberOfProcesses_HasTheBitsOfOne) {
  Fleet probe;
  ASSERT_OK(probe.Open(GetParam(), 1));
  const std::vector<int32_t> tokens = probe.golden.cases.back().tokens;
  std::vector<int> counts = {1, 2, 3, static_cast<int>(probe.n_layer()) + 1};
  for (const int workers : counts) {
    for (const int64_t ubatch : {7, 16, 33}) {
      const std::string what = absl::StrCat(workers, " workers, ubatch ", ubatch);
      SCOPED_TRACE(what);
      Fleet whole, apart;
      ASSERT_OK(whole.Open(GetParam(), workers));
      ASSERT_OK(whole.Start(Options(ubatch), false));
      ASSERT_OK(apart.Open(GetParam(), workers));
      ASSERT_OK(apart.Start(Options(ubatch), true));
      for (int w = 0; w < workers; ++w) {
        EXPECT_EQ(std::count(apart.layer_devices.begin(), apart.layer_devices.end(), w) > 0, true);
      }
      EXPECT_EQ(apart.Logits(tokens), whole.Logits(tokens));
      const auto start = absl::MakeConstSpan(tokens).first(5);
      EXPECT_EQ(apart.Continue(start, 12), whole.Continue(start, 12));
      CheckHandOffs(apart, workers, what);
      EXPECT_EQ(apart.runner->max_in_flight(), kMaxStepsInFlight);
    }
  }
}

std::string ModelName(const testing::TestParamInfo<const char*>& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, FleetModelTest,
                         testing::Values("llama-gqa", "llama-moe", "qwen2", "qwen3", "qwen3moe"),
                         ModelName);

BatchToken Token(int32_t sequence, int64_t position) {
  return {static_cast<int32_t>(7 + sequence), position, sequence, true};
}

// Accelerators with memories of their own, CPUs beside them, several sequences, several steps under
// way.
TEST(FleetRunner, StepsInFlight_HaveTheBitsOfOneProcess) {
  Fleet whole, apart;
  for (Fleet* fleet : {&whole, &apart}) {
    ASSERT_OK(fleet->OpenFakes("llama-gqa", {nullptr, nullptr}));
    ASSERT_OK(fleet->Start(Options(16, 4), fleet == &apart));
  }
  std::vector<std::vector<float>> want, got;
  for (Fleet* fleet : {&whole, &apart}) {
    std::vector<std::vector<float>>& rows = fleet == &whole ? want : got;
    for (int step = 0; step < 24; ++step) {
      if (fleet->runner->in_flight() == fleet->runner->max_in_flight()) {
        ASSERT_OK_AND_ASSIGN(rows.emplace_back(), fleet->runner->Collect());
      }
      const BatchToken token = Token(step % 4, step / 4);
      ASSERT_OK(fleet->runner->Launch({&token, 1}));
    }
    while (fleet->runner->in_flight() > 0) {
      ASSERT_OK_AND_ASSIGN(rows.emplace_back(), fleet->runner->Collect());
    }
  }
  EXPECT_EQ(got, want);
}

// The first worker finishes four steps while the second one is held in its first.
TEST(FleetRunner, FirstProcess_RunsAheadOfTheSecond) {
  Gate gate;
  Mutex mutex;
  CondVar changed;
  int finished = 0;
  Fleet fleet;
  fleet.on_finished = [&](size_t process) {
    MutexLock lock(mutex);
    if (process == 0) ++finished;
    changed.NotifyAll();
  };
  const auto hold = [&gate](const Graph&, NodeId) {
    gate.Pass();
    return absl::OkStatus();
  };
  ASSERT_OK(fleet.OpenFakes("llama-gqa", {nullptr, hold}));
  ASSERT_OK(fleet.Start(Options(16, 4), true));
  for (int32_t sequence = 0; sequence < 4; ++sequence) {
    const BatchToken token = Token(sequence, 0);
    ASSERT_OK(fleet.runner->Launch({&token, 1}));
  }
  {
    MutexLock lock(mutex);
    while (finished < 4) changed.Wait(mutex);
  }
  gate.Open();
  for (int i = 0; i < 4; ++i) ASSERT_OK(fleet.runner->Collect());
}

TEST(FleetRunner, FailedNode_NamesItsHost_AndTheSessionGoesOn) {
  auto failures = std::make_shared<std::atomic<int>>(0);
  const auto fail = [failures](const Graph&, NodeId) {
    return failures->fetch_sub(1) == 1 ? absl::InternalError("smoke") : absl::OkStatus();
  };
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first ? "the first fails" : "the second fails");
    Fleet fleet;
    ASSERT_OK(fleet.OpenFakes(
        "llama-gqa", {first ? Fleet::Hook(fail) : nullptr, first ? nullptr : Fleet::Hook(fail)}));
    ASSERT_OK(fleet.Start(Options(16), true));
    const std::vector<int32_t> tokens(20, 3);
    const std::vector<float> want = fleet.Logits(tokens);
    failures->store(1);
    fleet.runner->Truncate(0, 0);
    EXPECT_THAT(Prefill(*fleet.runner, tokens, 0, true),
                StatusIs(absl::StatusCode::kInternal,
                         testing::AllOf(HasSubstr(first ? "w0: " : "w1: "), HasSubstr("smoke"))));
    EXPECT_EQ(fleet.Logits(tokens), want);
    EXPECT_EQ(fleet.edges->waiting(1), 0);
  }
}

TEST(FleetRunner, LostPeer_FailsTheStepAndAllLaterOnes) {
  Gate gate;
  std::atomic<bool> holding = false;
  Fleet fleet;
  const auto hold = [&](const Graph&, NodeId) {
    if (holding) gate.Pass();
    return absl::OkStatus();
  };
  ASSERT_OK(fleet.OpenFakes("llama-gqa", {hold, nullptr}));
  ASSERT_OK(fleet.Start(Options(16), true));
  const std::vector<int32_t> tokens(20, 3);
  fleet.Logits(tokens);
  holding = true;
  const BatchToken next = Token(0, 20);
  ASSERT_OK(fleet.runner->Launch({&next, 1}));
  gate.AwaitArrival(1);
  // While the second process waits for the first.
  fleet.edges->AbortProcess(0, absl::UnavailableError("worker w0 is lost"));
  gate.Open();
  EXPECT_THAT(fleet.runner->Collect(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker w0 is lost")));
  EXPECT_THAT(fleet.runner->Step({&next, 1}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker w0 is lost")));
}

// A coordinator that computes nothing needs no process.
TEST(FleetRunner, OneWorker_RunsWithoutTheCoordinator) {
  Fleet whole, alone;
  ASSERT_OK(whole.Open("qwen3", 1));
  ASSERT_OK(whole.Start(Options(16), false));
  ASSERT_OK(alone.Open("qwen3", 1));
  ASSERT_OK(alone.StartAlone(Options(16)));
  const std::vector<int32_t> tokens(20, 3);
  EXPECT_EQ(alone.Logits(tokens), whole.Logits(tokens));
  EXPECT_EQ(alone.group->statistics()[0].steps, alone.runner->counters().steps);
  EXPECT_GT(alone.group->statistics()[0].compute_seconds, 0);
}

// A process whose device is not in the group's hosts is found out before anything runs.
TEST(FleetRunner, DeviceOfNoProcess_IsAnError) {
  Fleet fleet;
  ASSERT_OK(fleet.Open("llama-gqa", 2));
  FakeDevice fake(FakeDeviceOptions{});
  LocalProgramHostOptions options;
  options.devices = {&fake};
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  ProcessGroup group({GroupMember{"w0", host.get()}, GroupMember{"w7", host.get()}});
  EXPECT_THAT(fleet.StartIn(group, Options(16)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("w1.cpu0 belongs to none of the processes")));
}

}  // namespace
}  // namespace weft
