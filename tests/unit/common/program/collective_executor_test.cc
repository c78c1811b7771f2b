// Steps whose devices are ranks, in one process and in several.
#include <atomic>
#include <cstring>
#include <numeric>

#include "common/program/loopback_edges.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/collective_program.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<float> InputX(int64_t step) {
  std::vector<float> x(64);
  std::iota(x.begin(), x.end(), static_cast<float>(step));
  return x;
}

std::vector<float> Floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The processes of one communicator, each a host with fake devices, over loopback ports.
class Ranks {
 public:
  using Hook = std::function<absl::Status(const Graph&, NodeId)>;

  // on_node(process) is that of its devices.
  explicit Ranks(RankedProgramOptions options,
                 const std::function<Hook(int32_t)>& on_node = nullptr)
      : options_(std::move(options)),
        processes_(1 + *std::max_element(options_.process_of_rank.begin(),
                                         options_.process_of_rank.end())),
        port_({.processes = processes_, .needs_all = true}) {
    for (int32_t p = 0; p < processes_; ++p) {
      const int64_t count =
          std::count(options_.process_of_rank.begin(), options_.process_of_rank.end(), p);
      LocalProgramHostOptions host;
      for (int64_t d = 0; d < count; ++d) {
        FakeDeviceOptions fake;
        fake.name = absl::StrCat("fake", p, ".", d);
        fake.seed = static_cast<uint64_t>(100 * p + d + 1);
        if (on_node != nullptr) fake.before_node = on_node(p);
        fakes_.push_back(std::make_unique<FakeDevice>(std::move(fake)));
        host.devices.push_back(fakes_.back().get());
      }
      if (processes_ > 1) host.collectives = &port_.port(p);
      hosts_.push_back(*LocalProgramHost::Create(std::move(host)));
      options_.process = p;
      const absl::StatusOr<ProgramId> id = hosts_.back()->Install(RankedProgram(options_));
      EXPECT_OK(id.status());
      const absl::StatusOr<InstanceId> instance = hosts_.back()->Instantiate(*id, {});
      EXPECT_OK(instance.status());
      instances_.push_back(*instance);
    }
  }

  int32_t processes() const { return processes_; }
  LocalProgramHost& host(int32_t process) { return *hosts_[process]; }
  LoopbackEdges& port() { return port_; }

  absl::Status Launch(int32_t process, int64_t step, Clock::TimePoint deadline = Soon()) {
    const std::vector<float> x = InputX(step);
    std::vector<uint8_t> bytes(x.size() * sizeof(float));
    std::memcpy(bytes.data(), x.data(), bytes.size());
    StepInput input;
    input.step = step;
    input.deadline = deadline;
    input.inputs = {bytes};
    return hosts_[process]->Launch(instances_[process], input);
  }
  void LaunchAll(int64_t step) {
    for (int32_t p = processes_ - 1; p >= 0; --p) EXPECT_OK(Launch(p, step));
  }
  void ExpectResults(int64_t step) {
    for (int32_t p = 0; p < processes_; ++p) {
      ASSERT_OK_AND_ASSIGN(const StepOutput output, hosts_[p]->Await(step, Soon()));
      for (size_t i = 0; i < output.outputs.size(); i += 2) {
        EXPECT_EQ(Floats(output.outputs[i]), RankedSum(options_, InputX(step))) << "step " << step;
        EXPECT_EQ(Floats(output.outputs[i + 1]), RankedGather(options_)) << "step " << step;
      }
    }
  }

 private:
  RankedProgramOptions options_;
  const int32_t processes_;
  LoopbackEdges port_;
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::vector<std::unique_ptr<LocalProgramHost>> hosts_;
  std::vector<InstanceId> instances_;
};

RankedProgramOptions Options(std::vector<int32_t> process_of_rank, bool overlap = false,
                             bool detached = false) {
  RankedProgramOptions options;
  options.counts.clear();
  for (size_t r = 0; r < process_of_rank.size(); ++r) {
    options.counts.push_back(static_cast<int64_t>((r * 2 + 1) % 4 == 1 ? r : 2 * r + 1));
  }
  options.process_of_rank = std::move(process_of_rank);
  options.overlap = overlap;
  options.detached = detached;
  return options;
}

void CheckSteps(const RankedProgramOptions& options) {
  Ranks ranks(options);
  for (int64_t step = 1; step <= 20; ++step) {
    ranks.LaunchAll(step);
    if (step > 3) ranks.ExpectResults(step - 3);
  }
  for (int64_t step = 18; step <= 20; ++step) ranks.ExpectResults(step);
  for (int32_t p = 0; p < ranks.processes(); ++p) EXPECT_EQ(ranks.port().waiting(p), 0);
}

TEST(CollectiveExecutor, RanksOfOneProcess_AnyAlgorithm) {
  for (const int32_t ranks : {1, 2, 3, 5}) {
    for (const bool overlap : {false, true}) {
      for (int a = 0; a < 2; ++a) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, algorithm " << a);
        RankedProgramOptions options = Options(std::vector<int32_t>(ranks), overlap);
        options.algorithm = static_cast<CollectiveAlgorithm>(a);
        CheckSteps(options);
      }
    }
  }
}

TEST(CollectiveExecutor, RanksOfSeveralProcesses_AnyAlgorithm) {
  for (const std::vector<int32_t>& places :
       {std::vector<int32_t>{0, 1}, {1, 0, 0, 1}, {0, 1, 1, 2, 3}}) {
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      SCOPED_TRACE(testing::Message() << places.size() << " ranks, algorithm " << a);
      RankedProgramOptions options = Options(places);
      options.algorithm = static_cast<CollectiveAlgorithm>(a);
      CheckSteps(options);
    }
  }
}

// Values that BF16 holds exactly.
TEST(CollectiveExecutor, NarrowWire) {
  RankedProgramOptions options = Options({0, 0, 1});
  options.wire = DType::kBF16;
  CheckSteps(options);
}

TEST(CollectiveExecutor, SixteenRanks_Finish) {
  Ranks ranks(Options(std::vector<int32_t>(16)));
  for (int64_t step = 1; step <= 5; ++step) {
    ranks.LaunchAll(step);
    ranks.ExpectResults(step);
  }
}

TEST(CollectiveExecutor, ProcessThatDoesNotCome_DeadlineNamesItsRank) {
  Ranks ranks(Options({0, 1, 0}));
  ASSERT_OK(ranks.Launch(0, 1, SystemClock().Now() + std::chrono::milliseconds(50)));
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("all_reduce 'sum"), HasSubstr("rank 1 (process 1)"))));
  // Late, and alone.
  ASSERT_OK(ranks.Launch(1, 1, SystemClock().Now()));
  EXPECT_FALSE(ranks.host(1).Await(1, Soon()).ok());
  ranks.LaunchAll(2);
  ranks.ExpectResults(2);
}

TEST(CollectiveExecutor, LostProcess_FailsEverySurvivor) {
  Ranks ranks(Options({0, 1, 2}));
  ASSERT_OK(ranks.Launch(0, 1));
  ASSERT_OK(ranks.Launch(2, 1));
  ranks.port().AbortProcess(1, absl::UnavailableError("worker b is lost"));
  for (const int32_t p : {0, 2}) {
    EXPECT_THAT(ranks.host(p).Await(1, Soon()),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker b is lost")));
  }
}

// A rank that fails frees those beside it, which wait for it.
TEST(CollectiveExecutor, RankThatFails_EndsTheStepWithItsError) {
  Ranks ranks(Options({0, 0, 0}), [](int32_t) {
    return [](const Graph& graph, NodeId id) -> absl::Status {
      if (graph.node(id).name == "term 1") return absl::InternalError("smoke");
      return absl::OkStatus();
    };
  });
  ASSERT_OK(ranks.Launch(0, 1));
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
}

TEST(CollectiveExecutor, Cancel_FreesEveryRank_LaterStepsRun) {
  Ranks ranks(Options({0, 1, 0}));
  ASSERT_OK(ranks.Launch(0, 1));
  ASSERT_OK(ranks.host(0).Cancel(1));
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  ASSERT_OK(ranks.Launch(1, 1));
  ASSERT_OK(ranks.host(1).Cancel(1));
  EXPECT_FALSE(ranks.host(1).Await(1, Soon()).ok());
  ranks.LaunchAll(2);
  ranks.ExpectResults(2);
}

TEST(CollectiveExecutor, TimeInCollectives_CountsAsWaiting) {
  Ranks ranks(Options({0, 1}));
  ASSERT_OK(ranks.Launch(0, 1));
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  while (SecondsSince(clock, start) < 0.02) std::this_thread::yield();
  ASSERT_OK(ranks.Launch(1, 1));
  ASSERT_OK_AND_ASSIGN(const StepOutput output, ranks.host(0).Await(1, Soon()));
  EXPECT_GT(output.wait_seconds, 0);
  ASSERT_OK(ranks.host(1).Await(1, Soon()));
}

TEST(CollectiveExecutor, Detached_AnyAlgorithm) {
  for (const std::vector<int32_t>& places :
       {std::vector<int32_t>{0, 0, 0}, {0, 1}, {1, 0, 0, 1}, {0, 1, 1, 2, 3}}) {
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      for (const bool overlap : {false, true}) {
        SCOPED_TRACE(testing::Message() << places.size() << " ranks, algorithm " << a);
        RankedProgramOptions options = Options(places, overlap, true);
        options.algorithm = static_cast<CollectiveAlgorithm>(a);
        CheckSteps(options);
      }
    }
  }
}

// With a part of rank 0 to compute meanwhile.
RankedProgramOptions WithWork() {
  RankedProgramOptions options;
  options.process_of_rank = {0, 1};
  options.detached = true;
  return options;
}

// Rank 0 computes its part before rank 1 has given its term.
TEST(CollectiveExecutor, Detached_ComputesMeanwhile) {
  std::atomic<bool> computed = false;
  Ranks ranks(WithWork(), [&](int32_t) {
    return [&](const Graph& graph, NodeId id) {
      if (graph.node(id).name == "part 0") computed = true;
      return absl::OkStatus();
    };
  });
  ASSERT_OK(ranks.Launch(0, 1));
  const Clock::TimePoint end = Soon();
  while (!computed && SystemClock().Now() < end) std::this_thread::yield();
  EXPECT_TRUE(computed);
  ASSERT_OK(ranks.Launch(1, 1));
  ranks.ExpectResults(1);
}

TEST(CollectiveExecutor, Detached_RankThatFailsMeanwhile_EndsTheStep) {
  std::atomic<bool> fail = true;
  Ranks ranks(WithWork(), [&](int32_t process) {
    return [&fail, process](const Graph& graph, NodeId id) -> absl::Status {
      if (process == 0 && fail && graph.node(id).name == "part 0") {
        return absl::InternalError("smoke");
      }
      return absl::OkStatus();
    };
  });
  ranks.LaunchAll(1);
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
  // It waits for the other's part.
  EXPECT_OK(ranks.host(1).Cancel(1));
  EXPECT_FALSE(ranks.host(1).Await(1, Soon()).ok());
  fail = false;
  ranks.LaunchAll(2);
  ranks.ExpectResults(2);
}

TEST(CollectiveExecutor, Detached_ProcessThatDoesNotCome_DeadlineNamesItsRank) {
  Ranks ranks(Options({0, 1, 0}, false, true));
  ASSERT_OK(ranks.Launch(0, 1, SystemClock().Now() + std::chrono::milliseconds(50)));
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("finish node"), HasSubstr("rank 1 (process 1)"))));
  ASSERT_OK(ranks.Launch(1, 1, SystemClock().Now()));
  EXPECT_FALSE(ranks.host(1).Await(1, Soon()).ok());
  ranks.LaunchAll(2);
  ranks.ExpectResults(2);
}

TEST(CollectiveExecutor, Detached_CancelAndLoss_FreeEveryRank) {
  Ranks ranks(Options({0, 1, 2}, false, true));
  ASSERT_OK(ranks.Launch(0, 1));
  ASSERT_OK(ranks.host(0).Cancel(1));
  EXPECT_THAT(ranks.host(0).Await(1, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  ASSERT_OK(ranks.Launch(2, 1));
  ranks.port().AbortProcess(1, absl::UnavailableError("worker b is lost"));
  EXPECT_THAT(ranks.host(2).Await(1, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker b is lost")));
}

TEST(CollectiveExecutor, WithoutAPort_RanksElsewhereAreRefused) {
  FakeDevice fake(FakeDeviceOptions{});
  LocalProgramHostOptions options;
  options.devices = {&fake};
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  EXPECT_THAT(host->Install(RankedProgram(Options({0, 1}))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("ranks in other")));
}

}  // namespace
}  // namespace weft
