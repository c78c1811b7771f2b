// Steps: their order, their errors, their ends.
#include <cstring>

#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/gate.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// x on device 0, doubled there, copied to device 1, squared there, copied back, plus 1.
Program ThereAndBack() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId there = builder.Copy(doubled, DType::kF32);
  const NodeId squared = builder.Name(builder.Mul(there, there), "squared");
  const NodeId back = builder.Copy(squared, DType::kF32);
  builder.MarkOutput(builder.Name(builder.Scale(back, 1, 1), "result"));
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 1, 1, 0, 0}, 2);
}

std::vector<uint8_t> Bytes(const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> Floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class ExecutorTest : public ::testing::Test {
 protected:
  // `hook` runs before each node of a device.
  using Hook = std::function<absl::Status(const Graph&, NodeId)>;

  void Start(const Hook& on_first = nullptr, const Hook& on_second = nullptr) {
    for (int i = 0; i < 2; ++i) {
      FakeDeviceOptions options;
      options.name = i == 0 ? "fake0" : "fake1";
      options.seed = static_cast<uint64_t>(i) + 1;
      options.before_node = i == 0 ? on_first : on_second;
      fakes_.push_back(std::make_unique<FakeDevice>(std::move(options)));
    }
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(const ProgramId program, host_->Install(ThereAndBack()));
    ASSERT_OK_AND_ASSIGN(instance_, host_->Instantiate(program, {}));
  }

  absl::Status Launch(int64_t step, float value) {
    const std::vector<uint8_t> x = Bytes({value, 1, 2, 3});
    StepInput input;
    input.step = step;
    input.inputs = {x};
    return host_->Launch(instance_, input);
  }

  void ExpectResult(int64_t step, float value) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(step, Soon()));
    ASSERT_EQ(output.outputs.size(), 1u);
    const float y = 2 * value * 2 * value + 1;
    EXPECT_EQ(Floats(output.outputs[0]), (std::vector<float>{y, 5, 17, 37}));
    EXPECT_GT(output.compute_seconds, 0);
  }

  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<LocalProgramHost> host_;
  InstanceId instance_{};
};

TEST_F(ExecutorTest, CopiesBothWays_ManySteps_Right) {
  Start();
  for (int64_t step = 1; step <= 50; ++step) {
    ASSERT_OK(Launch(step, static_cast<float>(step)));
    if (step > 2) ExpectResult(step - 2, static_cast<float>(step - 2));
  }
}

TEST_F(ExecutorTest, StepOutOfOrder_IsRefused) {
  Start();
  EXPECT_THAT(Launch(2, 1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("step 2 was launched, step 1 is the next")));
  ASSERT_OK(Launch(1, 1));
  EXPECT_THAT(Launch(1, 1), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("step 2")));
  EXPECT_THAT(Launch(0, 1), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("step 2")));
  ASSERT_OK(Launch(2, 2));
  ExpectResult(1, 1);
  ExpectResult(2, 2);
}

TEST_F(ExecutorTest, FifthStepInFlight_IsRefusedUntilOneIsAwaited) {
  Start();
  for (int64_t step = 1; step <= 4; ++step) ASSERT_OK(Launch(step, 1));
  EXPECT_THAT(Launch(5, 1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("step 1 was not awaited")));
  ExpectResult(1, 1);
  ASSERT_OK(Launch(5, 3));
  ExpectResult(5, 3);
  ExpectResult(2, 1);
}

TEST_F(ExecutorTest, AwaitOfUnknownStep_IsNotFound) {
  Start();
  EXPECT_THAT(host_->Await(1, Soon()), StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 1")));
  EXPECT_THAT(host_->Await(-3, Soon()), StatusIs(absl::StatusCode::kNotFound, HasSubstr("-3")));
  EXPECT_THAT(host_->Cancel(1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 1")));
  ASSERT_OK(Launch(1, 1));
  ExpectResult(1, 1);
  EXPECT_OK(host_->Cancel(1));
  EXPECT_THAT(host_->Await(1, Soon()), StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 1")));
}

TEST_F(ExecutorTest, Deadline_PassesWithoutHarm) {
  Gate gate;
  Start([&](const Graph&, NodeId) {
    gate.Pass();
    return absl::OkStatus();
  });
  ASSERT_OK(Launch(1, 1));
  gate.AwaitArrival(1);
  EXPECT_THAT(host_->Await(1, SystemClock().Now()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 1")));
  gate.Open();
  ExpectResult(1, 1);
}

TEST_F(ExecutorTest, Cancel_EndsRunningAndQueuedSteps_LaterOnesRun) {
  Gate gate;
  Start([&](const Graph&, NodeId) {
    gate.Pass();
    return absl::OkStatus();
  });
  ASSERT_OK(Launch(1, 1));
  ASSERT_OK(Launch(2, 2));
  ASSERT_OK(Launch(3, 3));
  gate.AwaitArrival(1);
  ASSERT_OK(host_->Cancel(1));
  ASSERT_OK(host_->Cancel(2));
  gate.Open();
  EXPECT_THAT(host_->Await(1, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("step 1 was cancelled")));
  EXPECT_THAT(host_->Await(2, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("step 2 was cancelled")));
  ExpectResult(3, 3);
}

// Device 1 never sees its event recorded where device 0 fails first; neither hangs.
TEST_F(ExecutorTest, ErrorOfANode_EndsTheStepByName_LaterOnesRun) {
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first ? "device 0 fails" : "device 1 fails");
    fakes_.clear();
    auto failures = std::make_shared<std::atomic<int>>(1);
    const auto fail = [failures, first](const Graph& graph, NodeId id) {
      const bool here = graph.node(id).name == (first ? "doubled" : "squared");
      if (here && failures->fetch_sub(1) > 0) {
        return absl::InternalError(absl::StrCat(NodeText(graph, id), ": smoke"));
      }
      return absl::OkStatus();
    };
    Start(fail, fail);
    for (int64_t step = 1; step <= 3; ++step) ASSERT_OK(Launch(step, static_cast<float>(step)));
    EXPECT_THAT(
        host_->Await(1, Soon()),
        StatusIs(absl::StatusCode::kInternal,
                 AllOf(HasSubstr("step 1, "), HasSubstr(first ? "fake0" : "fake1"),
                       HasSubstr(first ? "(scale 'doubled'): smoke" : "(mul 'squared'): smoke"))));
    ExpectResult(2, 2);
    ExpectResult(3, 3);
    host_.reset();
  }
}

TEST_F(ExecutorTest, DestructionWithStepsInFlight_EndsThem) {
  for (int round = 0; round < 20; ++round) {
    fakes_.clear();
    Start();
    for (int64_t step = 1; step <= 4; ++step) ASSERT_OK(Launch(step, 1));
    host_.reset();
    EXPECT_EQ(fakes_[0]->used_bytes(), 0);
    EXPECT_EQ(fakes_[1]->used_bytes(), 0);
  }
}

TEST_F(ExecutorTest, WrongInputs_AreRefusedBeforeAnythingIsQueued) {
  Start();
  const std::vector<uint8_t> x(15);
  StepInput input;
  input.step = 1;
  EXPECT_THAT(host_->Launch(instance_, input),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 inputs, want 1")));
  input.inputs = {x};
  EXPECT_THAT(
      host_->Launch(instance_, input),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input 0 has 15 bytes, want 16")));
  ASSERT_OK(Launch(1, 4));
  ExpectResult(1, 4);
}

TEST_F(ExecutorTest, ReleasedInstance_CannotBeLaunched) {
  Start();
  ASSERT_OK(Launch(1, 1));
  ASSERT_OK(host_->Release(instance_));
  EXPECT_THAT(Launch(2, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("does not exist")));
  EXPECT_THAT(host_->Release(instance_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no instance")));
  ExpectResult(1, 1);
}

TEST_F(ExecutorTest, RefusedNode_FailsInstantiateByName) {
  FakeDeviceOptions options;
  options.refused_ops = {Op::kMul};
  FakeDevice picky(std::move(options));
  LocalProgramHostOptions host_options;
  host_options.devices = {&picky, &picky};
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(host_options)));
  ASSERT_OK_AND_ASSIGN(const ProgramId program, host->Install(ThereAndBack()));
  EXPECT_THAT(host->Instantiate(program, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("fake0, command 2"), HasSubstr("'squared'"))));
}

}  // namespace
}  // namespace weft
