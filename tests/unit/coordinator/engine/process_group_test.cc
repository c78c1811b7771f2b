// A group over hosts that do what the test says: who gets what, who is cancelled, whose error
// counts.
#include "coordinator/engine/process_group.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Bytes = std::vector<uint8_t>;

Clock::TimePoint Now() { return SystemClock().Now(); }
Clock::TimePoint Soon() { return Now() + std::chrono::seconds(60); }

// A step ends when the test says so, or when it is cancelled.
class ScriptedHost final : public ProgramHost {
 public:
  struct Launched {
    InstanceId instance{};
    int64_t edge_step = 0;
    std::vector<Bytes> inputs;
    std::vector<TableUpdate> updates;
    bool cancelled = false;
    bool awaited = false;
  };

  absl::StatusOr<ProgramId> Install(Program) override {
    if (asked) asked();
    return ProgramId{++programs};
  }
  absl::StatusOr<InstanceId> Instantiate(ProgramId, absl::Span<const SlotBinding> given) override {
    if (asked) asked();
    if (!refuse_instances.ok()) return refuse_instances;
    bindings.assign(given.begin(), given.end());
    ++live;
    return InstanceId{++instances};
  }
  absl::Status Release(InstanceId) override {
    --live;
    return absl::OkStatus();
  }
  absl::Status Launch(InstanceId instance, const StepInput& input) override {
    if (!refuse_launch.ok()) return refuse_launch;
    EXPECT_EQ(input.step, static_cast<int64_t>(steps.size()) + 1);  // no gap
    Launched step;
    step.instance = instance;
    step.edge_step = input.edge_step;
    for (const auto& value : input.inputs) step.inputs.emplace_back(value.begin(), value.end());
    step.updates = input.table_updates;
    steps[input.step] = step;
    return absl::OkStatus();
  }
  absl::StatusOr<StepOutput> Await(int64_t number, Clock::TimePoint deadline) override {
    const auto found = steps.find(number);
    if (found == steps.end() || found->second.awaited) return absl::NotFoundError("unknown step");
    const auto end = ends.find(number);
    if (end == ends.end() && !found->second.cancelled) {
      while (Now() < deadline && deadline != Clock::TimePoint::max()) continue;
      return absl::DeadlineExceededError("not yet");
    }
    found->second.awaited = true;
    if (end == ends.end()) return absl::CancelledError("was cancelled");
    return end->second;
  }
  absl::Status Cancel(int64_t number) override {
    steps.at(number).cancelled = true;
    return absl::OkStatus();
  }
  HostCounters counters() override { return reported; }

  void End(int64_t step, std::vector<Bytes> outputs, double seconds = 1) {
    StepOutput output;
    output.outputs = std::move(outputs);
    output.compute_seconds = seconds;
    output.wait_seconds = 10 * seconds;
    ends.emplace(step, std::move(output));
  }
  void Fail(int64_t step, absl::Status status) { ends.emplace(step, std::move(status)); }

  std::function<void()> asked;  // for a program or an instance
  int64_t programs = 0;
  int64_t instances = 0;
  int64_t live = 0;
  absl::Status refuse_instances;
  absl::Status refuse_launch;
  std::vector<SlotBinding> bindings;
  std::map<int64_t, Launched> steps;
  std::map<int64_t, absl::StatusOr<StepOutput>> ends;
  HostCounters reported;
};

ProcessProgram Part(std::string host, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
  ProcessProgram process;
  process.host = std::move(host);
  process.program.streams.push_back({0, {}});
  process.program.slots.push_back({SlotKind::kPageTable, 0, 0, 16});
  process.inputs = std::move(inputs);
  process.outputs = std::move(outputs);
  return process;
}

// Process a reads inputs 0 and 2 and gives output 1, process b reads 1 and 2 and gives output 0;
// a sends one tensor of 40 bytes to b.
FleetProgram Both() {
  FleetProgram fleet;
  fleet.processes = {Part("a", {0, 2}, {1}), Part("b", {1, 2}, {0})};
  fleet.edges = {{"x", 0, 1, 40}};
  fleet.output_count = 2;
  return fleet;
}

// Process b has nothing to do.
FleetProgram OnlyA() {
  FleetProgram fleet;
  fleet.processes = {Part("a", {0}, {0}), ProcessProgram{"b", {}, {}, {}}};
  fleet.output_count = 1;
  return fleet;
}

class ProcessGroupTest : public ::testing::Test {
 protected:
  InstanceId Make(FleetProgram fleet) {
    const absl::StatusOr<ProgramId> program = group_.Install(std::move(fleet));
    EXPECT_OK(program);
    const absl::StatusOr<InstanceId> instance = group_.Instantiate(*program, {});
    EXPECT_OK(instance);
    return *instance;
  }

  absl::Status Launch(InstanceId instance, int64_t step, size_t inputs,
                      std::vector<TableUpdate> updates = {}) {
    StepInput input;
    input.step = step;
    for (size_t i = 0; i < inputs; ++i) input.inputs.push_back(bytes_[i]);
    input.table_updates = std::move(updates);
    return group_.Launch(instance, input);
  }

  const std::vector<Bytes> bytes_ = {{10}, {11}, {12}};
  ScriptedHost a_, b_;
  ProcessGroup group_{{GroupMember{"a", &a_}, GroupMember{"b", &b_}}};
};

TEST_F(ProcessGroupTest, Inputs_GoWhereTheyAreRead_OutputsComeInThePlansOrder) {
  const InstanceId both = Make(Both());
  ASSERT_OK(Launch(both, 1, 3));
  EXPECT_THAT(a_.steps[1].inputs, ElementsAre(Bytes{10}, Bytes{12}));
  EXPECT_THAT(b_.steps[1].inputs, ElementsAre(Bytes{11}, Bytes{12}));
  EXPECT_EQ(a_.steps[1].edge_step, b_.steps[1].edge_step);
  a_.End(1, {{1}}, 2);
  b_.End(1, {{2}}, 3);
  ASSERT_OK_AND_ASSIGN(const StepOutput output, group_.Await(1, Soon()));
  EXPECT_THAT(output.outputs, ElementsAre(Bytes{2}, Bytes{1}));
  EXPECT_EQ(output.compute_seconds, 3);
  EXPECT_EQ(output.wait_seconds, 30);
  EXPECT_THAT(group_.Await(1, Soon()), StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 1")));
  EXPECT_EQ(group_.statistics()[0].messages, 1);
  EXPECT_EQ(group_.statistics()[0].message_bytes, 40);
  EXPECT_EQ(group_.statistics()[1].messages, 0);
  EXPECT_EQ(group_.statistics()[1].compute_seconds, 3);
}

// Neither answers before both were asked: a far worker costs its way once, not once for each.
TEST_F(ProcessGroupTest, ProgramsAndInstances_AreAskedOfAllAtOnce) {
  std::atomic<int> asked = 0;
  for (ScriptedHost* host : {&a_, &b_}) {
    host->asked = [&asked] {
      const int both = asked++ < 2 ? 2 : 4;
      const Clock::TimePoint end = Soon();
      while (asked < both && Now() < end) std::this_thread::yield();
      EXPECT_GE(asked, both);
    };
  }
  Make(Both());
  EXPECT_EQ(asked, 4);
}

// Each host counts its own steps without a gap; messages go by the group's count.
TEST_F(ProcessGroupTest, StepsWithoutAPart_DoNotCountAtThatHost) {
  const InstanceId only_a = Make(OnlyA());
  const InstanceId both = Make(Both());
  EXPECT_EQ(b_.programs, 1);
  ASSERT_OK(Launch(only_a, 1, 1));
  ASSERT_OK(Launch(only_a, 2, 1));
  ASSERT_OK(Launch(both, 3, 3));
  EXPECT_EQ(a_.steps.size(), 3u);
  EXPECT_EQ(b_.steps.size(), 1u);
  EXPECT_EQ(a_.steps[3].edge_step, b_.steps[1].edge_step);
  EXPECT_LT(a_.steps[2].edge_step, a_.steps[3].edge_step);
}

TEST_F(ProcessGroupTest, TableUpdates_ReachAProcessWithItsNextPart) {
  const InstanceId both = Make(Both());
  const InstanceId only_a = Make(OnlyA());
  ASSERT_OK(Launch(only_a, 1, 1, {{0, 1, 5}}));
  EXPECT_EQ(a_.steps[1].updates.size(), 1u);
  ASSERT_OK(Launch(both, 2, 3, {{0, 2, 6}}));
  EXPECT_EQ(a_.steps[2].updates.size(), 1u);
  ASSERT_EQ(b_.steps[1].updates.size(), 2u);
  EXPECT_EQ(b_.steps[1].updates[0].page, 5);
  EXPECT_EQ(b_.steps[1].updates[1].page, 6);
  EXPECT_THAT(Launch(both, 3, 3, {{0, 4, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no entry 4")));
}

TEST_F(ProcessGroupTest, FailureOfOne_CancelsTheOther_AndItsErrorCounts) {
  const InstanceId both = Make(Both());
  for (const bool first : {true, false}) {
    const int64_t step = first ? 1 : 2;
    ASSERT_OK(Launch(both, step, 3));
    (first ? a_ : b_).Fail(step, absl::InternalError("smoke"));
    EXPECT_THAT(group_.Await(step, Soon()),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(first ? "a: smoke" : "b: smoke")));
    EXPECT_TRUE((first ? b_ : a_).steps[step].cancelled);
    EXPECT_TRUE((first ? b_ : a_).steps[step].awaited);
  }
  ASSERT_OK(Launch(both, 3, 3));
}

TEST_F(ProcessGroupTest, CancelledAndAborted_GiveWayToARealError) {
  const InstanceId both = Make(Both());
  const absl::Status consequences[] = {absl::CancelledError("later"), absl::AbortedError("later")};
  int64_t step = 0;
  for (const absl::Status& consequence : consequences) {
    for (ScriptedHost* real : {&a_, &b_}) {
      ASSERT_OK(Launch(both, ++step, 3));
      real->Fail(step, absl::DataLossError("real"));
      (real == &a_ ? b_ : a_).Fail(step, consequence);
      EXPECT_THAT(group_.Await(step, Soon()),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("real")));
    }
  }
}

// A message that did not come in time ends the step for good; the wait for it says the same code.
TEST_F(ProcessGroupTest, StepThatTimedOut_IsNoEndlessWait) {
  const InstanceId both = Make(Both());
  ASSERT_OK(Launch(both, 1, 3));
  a_.Fail(1, absl::DeadlineExceededError("edge 3 did not come"));
  EXPECT_THAT(group_.Await(1, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("a: edge 3 did not come")));
  EXPECT_TRUE(b_.steps[1].cancelled);
}

TEST_F(ProcessGroupTest, WaitThatTimedOut_LeavesTheStepInFlight) {
  const InstanceId both = Make(Both());
  ASSERT_OK(Launch(both, 1, 3));
  b_.End(1, {{2}});
  EXPECT_THAT(group_.Await(1, Now()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 1")));
  a_.End(1, {{1}});
  ASSERT_OK_AND_ASSIGN(const StepOutput output, group_.Await(1, Soon()));
  EXPECT_THAT(output.outputs, ElementsAre(Bytes{2}, Bytes{1}));
}

TEST_F(ProcessGroupTest, Cancel_ReachesAll) {
  const InstanceId both = Make(Both());
  ASSERT_OK(Launch(both, 1, 3));
  ASSERT_OK(group_.Cancel(1));
  EXPECT_THAT(group_.Await(1, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("was cancelled")));
  EXPECT_OK(group_.Cancel(1));
  EXPECT_THAT(group_.Cancel(2), StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 2")));
}

// Its name in messages is not used again: what process a has sent must not meet the next attempt.
TEST_F(ProcessGroupTest, RefusedLaunch_IsTakenBackAndMayBeRepeated) {
  const InstanceId both = Make(Both());
  b_.refuse_launch = absl::UnavailableError("gone");
  EXPECT_THAT(Launch(both, 1, 3, {{0, 1, 5}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("b: gone")));
  EXPECT_TRUE(a_.steps[1].cancelled);
  EXPECT_TRUE(a_.steps[1].awaited);
  b_.refuse_launch = absl::OkStatus();
  ASSERT_OK(Launch(both, 1, 3));
  EXPECT_GT(a_.steps[2].edge_step, a_.steps[1].edge_step);
  EXPECT_THAT(a_.steps[2].updates, IsEmpty());
  ASSERT_EQ(b_.steps[1].updates.size(), 1u);
  EXPECT_EQ(b_.steps[1].updates[0].page, 5);
}

TEST_F(ProcessGroupTest, WrongLaunches_AreRefused) {
  const InstanceId both = Make(Both());
  EXPECT_THAT(Launch(both, 2, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("step 1 is the next")));
  EXPECT_THAT(Launch(both, 1, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 inputs, want 3")));
  EXPECT_THAT(Launch(InstanceId{99}, 1, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("instance 99")));
  for (int64_t step = 1; step <= kMaxStepsInFlight; ++step) ASSERT_OK(Launch(both, step, 3));
  EXPECT_THAT(Launch(both, 5, 3),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("step 1 was not awaited")));
}

TEST_F(ProcessGroupTest, HostThatReturnsTooLittle_IsAnErrorByName) {
  const InstanceId both = Make(Both());
  ASSERT_OK(Launch(both, 1, 3));
  a_.End(1, {{1}});
  b_.End(1, {});
  EXPECT_THAT(group_.Await(1, Soon()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("b: the step returned 0 outputs")));
}

TEST_F(ProcessGroupTest, Bindings_GoToTheHostOfTheirBuffer) {
  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<SlotBinding> bindings;
  for (const char* host : {"a", "b", "a"}) {
    FakeDeviceOptions options;
    options.host = host;
    devices.push_back(std::make_unique<FakeDevice>(options));
    ASSERT_OK_AND_ASSIGN(buffers.emplace_back(),
                         devices.back()->buffer_type().Allocate(64, BufferUsage::kWeights));
    bindings.push_back(
        {SlotKind::kWeight, static_cast<int32_t>(bindings.size()), buffers.back().get(), 0});
  }
  ASSERT_OK_AND_ASSIGN(const ProgramId program, group_.Install(Both()));
  ASSERT_OK(group_.Instantiate(program, bindings).status());
  ASSERT_EQ(a_.bindings.size(), 2u);
  EXPECT_EQ(a_.bindings[1].id, 2);
  ASSERT_EQ(b_.bindings.size(), 1u);
  EXPECT_EQ(b_.bindings[0].id, 1);
}

TEST_F(ProcessGroupTest, InstanceThatOneRefuses_IsReleasedInTheOthers) {
  ASSERT_OK_AND_ASSIGN(const ProgramId program, group_.Install(Both()));
  b_.refuse_instances = absl::ResourceExhaustedError("full");
  EXPECT_THAT(group_.Instantiate(program, {}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("b: full")));
  EXPECT_EQ(a_.live, 0);
  EXPECT_THAT(group_.Instantiate(program, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not installed")));
}

TEST_F(ProcessGroupTest, Release_ReachesAll) {
  const InstanceId both = Make(Both());
  EXPECT_EQ(a_.live + b_.live, 2);
  ASSERT_OK(group_.Release(both));
  EXPECT_EQ(a_.live + b_.live, 0);
  EXPECT_THAT(group_.Release(both), StatusIs(absl::StatusCode::kNotFound, HasSubstr("instance")));
  EXPECT_THAT(Launch(both, 1, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("does not exist")));
}

TEST_F(ProcessGroupTest, Counters_AddUp) {
  a_.reported.memory_replaced = 1;
  a_.reported.launched = 5;
  a_.reported.last_reason = "arena";
  b_.reported.memory_replaced = 2;
  b_.reported.launched = 3;
  EXPECT_EQ(group_.counters().memory_replaced, 3);
  EXPECT_EQ(group_.counters().launched, 5);
  EXPECT_EQ(group_.counters().last_reason, "arena");
}

TEST(ProcessGroup, OfOne_HandsEverythingOn) {
  ScriptedHost host;
  ProcessGroup group(host);
  FleetProgram fleet;
  fleet.processes = {Part("", {}, {})};
  ASSERT_OK_AND_ASSIGN(const ProgramId program, group.Install(std::move(fleet)));
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, group.Instantiate(program, {}));
  const Bytes bytes = {1, 2};
  StepInput input;
  input.step = 1;
  input.inputs = {bytes};
  input.table_updates = {{7, 8, 9}};
  ASSERT_OK(group.Launch(instance, input));
  EXPECT_THAT(host.steps[1].inputs, ElementsAre(bytes));
  EXPECT_EQ(host.steps[1].updates[0].table, 7);
  EXPECT_EQ(host.steps[1].edge_step, 0);
  host.End(1, {bytes});
  ASSERT_OK_AND_ASSIGN(const StepOutput output, group.Await(1, Soon()));
  EXPECT_THAT(output.outputs, ElementsAre(bytes));
  EXPECT_EQ(group.statistics()[0].steps, 1);
  EXPECT_EQ(group.statistics()[0].wait_seconds, 10);
  ASSERT_OK(group.Release(instance));
  EXPECT_EQ(host.live, 0);
}

}  // namespace
}  // namespace weft
