// Coordinators and workers of one process, over their real control and data planes.
#include "coordinator/cluster/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_scope.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "coordinator/engine/model_runner.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "worker/worker.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr const char* kModel = "llama-gqa";

// A coordinator with a model on the workers, as a command builds it.
class Coordinator {
 public:
  absl::Status Open(const FleetOptions& options, Logger& logger) {
    golden_ = ReadGoldenModel(TestDataFolder() + "/models/" + kModel);
    ASSIGN_OR_RETURN(file_, GgufFile::Open(golden_.model_path));
    ASSIGN_OR_RETURN(model_, Model::Create(*file_));
    ASSIGN_OR_RETURN(fleet_, Fleet::Open(options, logger));
    ASSIGN_OR_RETURN(cpu_, CpuDevice::Create(CpuDeviceOptions()));
    PlacedDevices placed;
    placed.devices = fleet_->devices();
    placed.devices.push_back(cpu_.get());
    PlacementOptions placement;
    placement.tensor_split.assign(fleet_->devices().size(), 1);
    ASSIGN_OR_RETURN(placed.placement, PlaceModel(*model_, placed.devices, placement));
    LocalProgramHostOptions local;
    local.devices = {cpu_.get()};
    local.edges = &fleet_->edges();
    ASSIGN_OR_RETURN(local_, LocalProgramHost::Create(local));
    std::vector<GroupMember> members;
    for (int32_t i = 0; i < fleet_->worker_count(); ++i) {
      members.push_back({fleet_->hosts()[i], &fleet_->link().host(i), true});
    }
    members.push_back({"local", local_.get(), false});
    group_ = std::make_unique<ProcessGroup>(std::move(members));
    RunnerOptions run;
    run.context = 256;
    run.ubatch = 16;
    run.key_type = DType::kF32;
    run.value_type = DType::kF32;
    run.foreign_weights = &fleet_->weights();
    ASSIGN_OR_RETURN(runner_, ModelRunner::Create(*model_, placed, *group_, clock_, run));
    return absl::OkStatus();
  }

  // The logits of the next token, `token`, of the one sequence.
  absl::StatusOr<std::vector<float>> Next(int32_t token) {
    if (length_ == 256) {
      runner_->Truncate(0, 0);
      length_ = 0;
    }
    const BatchToken next = {token, length_, 0, true};
    ASSIGN_OR_RETURN(std::vector<float> logits, runner_->Step({&next, 1}));
    ++length_;
    return logits;
  }

  Fleet& fleet() { return *fleet_; }

 private:
  const SystemClock clock_;
  GoldenModel golden_;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<CpuDevice> cpu_;
  std::unique_ptr<LocalProgramHost> local_;
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<ModelRunner> runner_;
  int64_t length_ = 0;
};

class FleetTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Worker> StartWorker(int number) {
    WorkerOptions options;
    options.listen = "unix:" + folder_.File("w" + std::to_string(number) + ".sock");
    options.threads = 1;
    options.transport = GetParam();
    auto worker = Worker::Start(options, nullptr, logger_);
    EXPECT_THAT(worker, IsOk());
    return worker.ok() ? *std::move(worker) : nullptr;
  }

  FleetOptions Options(int workers) const {
    FleetOptions options;
    for (int i = 0; i < workers; ++i) {
      options.workers.push_back("unix:" + folder_.File("w" + std::to_string(i) + ".sock"));
    }
    options.transport = GetParam();
    return options;
  }

  TemporaryFolder folder_;
  Logger logger_{"test", LogLevel::kError};
};

// Tokens that differ from step to step and from coordinator to coordinator.
int32_t TokenAt(int step, int who) { return (step * 7 + who * 13 + 3) % 97; }

TEST_P(FleetTest, TwoCoordinators_OnTheSameWorkers_GetTheirOwnAnswers) {
  constexpr int kSteps = 1000;
  const auto first = StartWorker(0);
  const auto second = StartWorker(1);
  // What each gets when it is alone.
  std::vector<std::vector<float>> want[2];
  for (int who = 0; who < 2; ++who) {
    Coordinator alone;
    ASSERT_THAT(alone.Open(Options(2), logger_), IsOk());
    for (int step = 0; step < kSteps; ++step) {
      const auto logits = alone.Next(TokenAt(step, who));
      ASSERT_THAT(logits, IsOk());
      want[who].push_back(*logits);
    }
  }
  Coordinator both[2];
  for (Coordinator& coordinator : both) {
    ASSERT_THAT(coordinator.Open(Options(2), logger_), IsOk());
  }
  int wrong[2] = {0, 0};
  std::vector<std::thread> threads;
  for (int who = 0; who < 2; ++who) {
    threads.emplace_back([&, who] {
      for (int step = 0; step < kSteps; ++step) {
        const auto logits = both[who].Next(TokenAt(step, who));
        if (!logits.ok() || *logits != want[who][step]) ++wrong[who];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

TEST_P(FleetTest, Worker_EndsAndStartsAgain_ServesTheSameCoordinatorProcess) {
  const auto first = StartWorker(0);
  auto second = StartWorker(1);
  std::vector<float> want;
  {
    Coordinator coordinator;
    ASSERT_THAT(coordinator.Open(Options(2), logger_), IsOk());
    const auto logits = coordinator.Next(5);
    ASSERT_THAT(logits, IsOk());
    want = *logits;
    second.reset();
    const SystemClock clock;
    const Clock::TimePoint start = clock.Now();
    const auto failed = coordinator.Next(6);
    EXPECT_THAT(failed, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker w1")));
    EXPECT_EQ(ScopeOf(failed.status()), ErrorScope::kWorker) << failed.status();
    EXPECT_LT(SecondsSince(clock, start), 10);
    EXPECT_THAT(coordinator.fleet().lost(), StatusIs(absl::StatusCode::kUnavailable));
    // Later calls fail at once, and nothing hangs.
    EXPECT_THAT(coordinator.Next(6), StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(Coordinator().Open(Options(2), logger_), StatusIs(absl::StatusCode::kUnavailable));
  second = StartWorker(1);
  Coordinator again;
  ASSERT_THAT(again.Open(Options(2), logger_), IsOk());
  const auto logits = again.Next(5);
  ASSERT_THAT(logits, IsOk());
  EXPECT_EQ(*logits, want);
}

TEST_P(FleetTest, Coordinator_Gone_TheWorkerKeepsNothing) {
  const auto worker = StartWorker(0);
  const auto total = worker->devices()[0]->memory().free_bytes;
  {
    Coordinator coordinator;
    ASSERT_THAT(coordinator.Open(Options(1), logger_), IsOk());
    ASSERT_THAT(coordinator.Next(5), IsOk());
    EXPECT_EQ(worker->sessions(), 1);
  }
  EXPECT_TRUE(worker->AwaitSessions(0, SystemClock().Now() + std::chrono::seconds(60)));
  EXPECT_GT(total, 0);
}

TEST_P(FleetTest, Drain_NewSessions_AreRefusedAndOpenOnesGoOn) {
  const auto worker = StartWorker(0);
  Coordinator coordinator;
  ASSERT_THAT(coordinator.Open(Options(1), logger_), IsOk());
  worker->Drain();
  EXPECT_THAT(Coordinator().Open(Options(1), logger_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("drain")));
  EXPECT_THAT(coordinator.Next(5), IsOk());
}

TEST_P(FleetTest, Connect_TakesLong_SaysOnceWhatItWaitsFor) {
  const auto worker = StartWorker(0);
  // Listens and never answers.
  const int silent = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string path = folder_.File("w1.sock");
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(silent, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(silent, 5), 0);
  FleetOptions options = Options(2);
  Logger logger("test", LogLevel::kInfo);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Fleet::Open(options, logger).ok());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("test: connecting to unix:" + path + " ..."));
  EXPECT_EQ(text.find("connecting"), text.rfind("connecting")) << text;
  close(silent);
}

INSTANTIATE_TEST_SUITE_P(Transports, FleetTest, ::testing::Values("auto", "grpc"));

}  // namespace
}  // namespace weft
