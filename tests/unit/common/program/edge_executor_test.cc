// Steps of two processes that hand tensors to each other: two hosts with loopback edges.
#include <cstring>
#include <set>

#include "common/graph/graph_builder.h"
#include "common/program/loopback_edges.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/gate.h"
#include "tests/unit/common/program/hostile_program.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 16;

NodeId Receive(GraphBuilder& builder, std::string_view name) {
  return builder.Name(builder.Make(Op::kReceive, ReceiveAttributes{DType::kF32, {4, 1, 1, 1}}, {}),
                      name);
}

void Insert(Program& program, size_t at, Command command) {
  Commands(program, 0)
      .insert(Commands(program, 0).begin() + static_cast<int64_t>(at), std::move(command));
}

// Process 0: x doubled, sent as edge 0; what comes back as edge 7 plus 1.
Program Front() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId back = Receive(builder, "back");
  const NodeId result = builder.Name(builder.Scale(back, 1, 1), "result");
  builder.MarkOutput(result);
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0}, 1);
  Commands(program, 0).clear();
  Insert(program, 0, ComputeCommand{{doubled}});
  Insert(program, 1, SendCommand{doubled, PlaceOf(program, "doubled"), kBytes, 0, 1});
  Insert(program, 2, ReceiveCommand{back, PlaceOf(program, "back"), kBytes, 7, 1});
  Insert(program, 3, ComputeCommand{{result}});
  return program;
}

// Process 1: squares what comes.
Program Back() {
  GraphBuilder builder;
  const NodeId there = Receive(builder, "there");
  const NodeId squared = builder.Name(builder.Mul(there, there), "squared");
  builder.MarkOutput(squared);
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0}, 1);
  Commands(program, 0).clear();
  Insert(program, 0, ReceiveCommand{there, PlaceOf(program, "there"), kBytes, 0, 0});
  Insert(program, 1, ComputeCommand{{squared}});
  Insert(program, 2, SendCommand{squared, PlaceOf(program, "squared"), kBytes, 7, 0});
  return program;
}

class EdgeExecutorTest : public ::testing::Test {
 protected:
  using Hook = std::function<absl::Status(const Graph&, NodeId)>;

  void Start(Hook on_front = nullptr, Hook on_back = nullptr) {
    Hook hooks[] = {std::move(on_front), std::move(on_back)};
    for (int p = 0; p < 2; ++p) {
      FakeDeviceOptions options;
      options.name = p == 0 ? "front" : "back";
      options.seed = static_cast<uint64_t>(p) + 1;
      options.before_node = std::move(hooks[p]);
      fakes_.push_back(std::make_unique<FakeDevice>(std::move(options)));
      LocalProgramHostOptions host;
      host.devices = {fakes_.back().get()};
      host.edges = &edges_.port(p);
      host.on_finished = [this, p](int64_t step) {
        MutexLock lock(mutex_);
        finished_[p].insert(step);
        changed_.NotifyAll();
      };
      ASSERT_OK_AND_ASSIGN(hosts_[p], LocalProgramHost::Create(std::move(host)));
      ASSERT_OK_AND_ASSIGN(const ProgramId program, hosts_[p]->Install(p == 0 ? Front() : Back()));
      ASSERT_OK_AND_ASSIGN(instances_[p], hosts_[p]->Instantiate(program, {}));
    }
  }

  void TearDown() override {
    for (auto& host : hosts_) host.reset();
  }

  static std::vector<uint8_t> Bytes(float value) {
    const std::vector<float> values = {value, 1, 2, 3};
    std::vector<uint8_t> bytes(kBytes);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  absl::Status Launch(int p, int64_t step, Clock::TimePoint deadline = Soon(),
                      int64_t edge_step = 0) {
    const std::vector<uint8_t> x = Bytes(static_cast<float>(step));
    StepInput input;
    input.step = step;
    input.edge_step = edge_step;
    input.deadline = deadline;
    if (p == 0) input.inputs = {x};
    return hosts_[p]->Launch(instances_[p], input);
  }

  void ExpectResult(int64_t step) {
    ASSERT_OK_AND_ASSIGN(const StepOutput front, hosts_[0]->Await(step, Soon()));
    ASSERT_OK(hosts_[1]->Await(step, Soon()));
    std::vector<float> values(4);
    std::memcpy(values.data(), front.outputs[0].data(), kBytes);
    const auto x = static_cast<float>(step);
    EXPECT_EQ(values, (std::vector<float>{4 * x * x + 1, 5, 17, 37})) << "step " << step;
  }

  void AwaitFinished(int p, int64_t step) {
    MutexLock lock(mutex_);
    while (finished_[p].count(step) == 0) changed_.Wait(mutex_);
  }

  LoopbackEdges edges_{{.processes = 2}};
  Mutex mutex_;
  CondVar changed_;
  std::multiset<int64_t> finished_[2] ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<LocalProgramHost> hosts_[2];
  InstanceId instances_[2];
};

TEST_F(EdgeExecutorTest, ThereAndBack_ManySteps_Right) {
  Start();
  for (int64_t step = 1; step <= 40; ++step) {
    ASSERT_OK(Launch(static_cast<int>(step % 2), step));
    ASSERT_OK(Launch(static_cast<int>(1 - step % 2), step));
    if (step > 3) ExpectResult(step - 3);
  }
  for (int64_t step = 38; step <= 40; ++step) ExpectResult(step);
  EXPECT_EQ(edges_.traffic(0, 1).messages, 40);
  EXPECT_EQ(edges_.traffic(1, 0).bytes, 40 * kBytes);
  EXPECT_EQ(edges_.traffic(0, 1).dropped, 0);
}

// Process 1 is given its steps when process 0 has started all of its own.
TEST_F(EdgeExecutorTest, SendersRunAhead_MessagesWait) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  Program sender = CompileForTest(*std::move(builder).Finish(), {0, 0}, 1);
  Commands(sender, 0).emplace_back(SendCommand{doubled, PlaceOf(sender, "doubled"), kBytes, 0, 1});
  Program receiver = Back();
  Drop<SendCommand>(receiver, 0);
  Start();
  ASSERT_OK_AND_ASSIGN(const ProgramId first, hosts_[0]->Install(sender));
  ASSERT_OK_AND_ASSIGN(instances_[0], hosts_[0]->Instantiate(first, {}));
  ASSERT_OK_AND_ASSIGN(const ProgramId second, hosts_[1]->Install(receiver));
  ASSERT_OK_AND_ASSIGN(instances_[1], hosts_[1]->Instantiate(second, {}));
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_OK(Launch(0, step));
    AwaitFinished(0, step);
  }
  EXPECT_EQ(edges_.waiting(1), 4);
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_OK(Launch(1, step));
    ASSERT_OK_AND_ASSIGN(const StepOutput output, hosts_[1]->Await(step, Soon()));
    std::vector<float> values(4);
    std::memcpy(values.data(), output.outputs[0].data(), kBytes);
    EXPECT_EQ(values, (std::vector<float>{static_cast<float>(4 * step * step), 4, 16, 36}));
  }
}

// The hosts number their steps differently.
TEST_F(EdgeExecutorTest, EdgeStep_NamesTheMessages) {
  Start();
  ASSERT_OK(Launch(0, 1, Soon(), 17));
  ASSERT_OK(Launch(1, 1, Soon(), 17));
  ExpectResult(1);
  ASSERT_OK(Launch(1, 2, SystemClock().Now(), 18));  // process 0 has no part in it
  EXPECT_THAT(hosts_[1]->Await(2, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  EXPECT_THAT(Launch(0, 2, Soon(), 17),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("name 17 does not follow 17 of the last step")));
  EXPECT_THAT(Launch(0, 2, Soon(), -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
  ASSERT_OK(Launch(0, 2, Soon(), 19));
  ASSERT_OK(Launch(1, 3, Soon(), 19));
  ASSERT_OK_AND_ASSIGN(const StepOutput output, hosts_[0]->Await(2, Soon()));
  EXPECT_EQ(output.outputs.size(), 1u);
  EXPECT_OK(hosts_[1]->Await(3, Soon()));
}

TEST_F(EdgeExecutorTest, NoMessageByTheDeadline_FailsTheStepByName) {
  Start();
  ASSERT_OK(Launch(1, 1, SystemClock().Now()));
  EXPECT_THAT(hosts_[1]->Await(1, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("step 1, back"), HasSubstr("(receive 'there')"),
                             HasSubstr("from process 0"))));
  // Late, and nobody's.
  ASSERT_OK(Launch(0, 1, SystemClock().Now()));
  EXPECT_FALSE(hosts_[0]->Await(1, Soon()).ok());
  EXPECT_EQ(edges_.waiting(1), 0);
  EXPECT_EQ(edges_.traffic(0, 1).dropped, 1);
  ASSERT_OK(Launch(0, 2));
  ASSERT_OK(Launch(1, 2));
  ExpectResult(2);
}

TEST_F(EdgeExecutorTest, Cancel_WakesItsReceive_LaterStepsRun) {
  Start();
  ASSERT_OK(Launch(1, 1));
  ASSERT_OK(hosts_[1]->Cancel(1));
  EXPECT_THAT(hosts_[1]->Await(1, Soon()), StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  ASSERT_OK(Launch(0, 1));
  ASSERT_OK(hosts_[0]->Cancel(1));
  EXPECT_FALSE(hosts_[0]->Await(1, Soon()).ok());
  ASSERT_OK(Launch(0, 2));
  ASSERT_OK(Launch(1, 2));
  ExpectResult(2);
  EXPECT_EQ(edges_.waiting(0), 0);
  EXPECT_EQ(edges_.waiting(1), 0);
}

TEST_F(EdgeExecutorTest, ErrorOnOneSide_LeavesTheOtherToItsDeadlineOrCancel) {
  Start(nullptr, [](const Graph&, NodeId) { return absl::InternalError("smoke"); });
  ASSERT_OK(Launch(0, 1));
  ASSERT_OK(Launch(1, 1));
  EXPECT_THAT(hosts_[1]->Await(1, Soon()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
  EXPECT_EQ(edges_.traffic(1, 0).messages, 0);
  ASSERT_OK(hosts_[0]->Cancel(1));
  EXPECT_THAT(hosts_[0]->Await(1, Soon()), StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
}

TEST_F(EdgeExecutorTest, LostPeer_FailsTheStepWithItsError) {
  Start();
  ASSERT_OK(Launch(1, 1));
  edges_.Abort(absl::UnavailableError("worker a is lost"));
  EXPECT_THAT(hosts_[1]->Await(1, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker a is lost")));
}

TEST_F(EdgeExecutorTest, DestructionWhileReceiving_Ends) {
  Start();
  for (int64_t step = 1; step <= 4; ++step) ASSERT_OK(Launch(1, step));
  hosts_[1].reset();
  EXPECT_EQ(fakes_[1]->used_bytes(), 0);
}

// Waiting for the other process is no computing.
TEST_F(EdgeExecutorTest, TimeInReceives_CountsAsWaiting) {
  Start();
  ASSERT_OK(Launch(1, 1));
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  while (SecondsSince(clock, start) < 0.02) std::this_thread::yield();
  ASSERT_OK(Launch(0, 1));
  ASSERT_OK_AND_ASSIGN(const StepOutput output, hosts_[1]->Await(1, Soon()));
  EXPECT_GT(output.wait_seconds, 0);
  EXPECT_GT(output.compute_seconds, 0);
  ASSERT_OK(hosts_[0]->Await(1, Soon()));
}

TEST_F(EdgeExecutorTest, OnFinished_IsCalledOncePerStep) {
  Start();
  for (int64_t step = 1; step <= 10; ++step) {
    ASSERT_OK(Launch(0, step));
    ASSERT_OK(Launch(1, step));
    for (const int p : {0, 1}) AwaitFinished(p, step);
    ExpectResult(step);
  }
  ASSERT_OK(Launch(1, 11));
  ASSERT_OK(hosts_[1]->Cancel(11));
  AwaitFinished(1, 11);
  EXPECT_THAT(hosts_[1]->Await(11, SystemClock().Now()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  MutexLock lock(mutex_);
  EXPECT_EQ(finished_[0].size(), 10u);
  EXPECT_EQ(finished_[1].size(), 11u);
}

TEST_F(EdgeExecutorTest, WithoutAPort_ProgramsWithEdgesAreRefused) {
  LocalProgramHostOptions options;
  FakeDevice fake(FakeDeviceOptions{});
  options.devices = {&fake};
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  for (const Program& program : {Front(), Back()}) {
    EXPECT_THAT(host->Install(program), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                 HasSubstr("this host has no edges")));
  }
}

// The reply is taken on the thread of the device, as a worker does it.
TEST(OnFinished, MayAwaitItsStepAtOnce) {
  FakeDevice fake(FakeDeviceOptions{});
  Mutex mutex;
  CondVar changed;
  std::vector<int64_t> replied;
  LocalProgramHost* awaited = nullptr;
  LocalProgramHostOptions options;
  options.devices = {&fake};
  options.on_finished = [&](int64_t step) {
    EXPECT_OK(awaited->Await(step, SystemClock().Now()));
    MutexLock lock(mutex);
    replied.push_back(step);
    changed.NotifyAll();
  };
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  awaited = host.get();
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  builder.MarkOutput(builder.Scale(x, 2));
  ASSERT_OK_AND_ASSIGN(const ProgramId program,
                       host->Install(CompileForTest(*std::move(builder).Finish(), {0, 0}, 1)));
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, host->Instantiate(program, {}));
  ASSERT_OK_AND_ASSIGN(const ProgramId nothing, host->Install(Program{}));
  ASSERT_OK_AND_ASSIGN(const InstanceId empty, host->Instantiate(nothing, {}));
  const std::vector<uint8_t> bytes(kBytes);
  StepInput input;
  for (input.step = 1; input.step <= 20; ++input.step) {
    const bool works = input.step % 3 > 0;
    input.inputs.clear();
    if (works) input.inputs.push_back(bytes);
    ASSERT_OK(host->Launch(works ? instance : empty, input));
    MutexLock lock(mutex);
    while (static_cast<int64_t>(replied.size()) < input.step) changed.Wait(mutex);
    EXPECT_EQ(replied.back(), input.step);
  }
}

}  // namespace
}  // namespace weft
