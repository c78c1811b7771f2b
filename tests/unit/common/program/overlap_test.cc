// Steps that overlap: when they start, which copies they use, what becomes of them after errors.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "common/base/mutex.h"
#include "common/graph/graph_builder.h"
#include "common/program/loopback_edges.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/gate.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// x doubled on device 0; on device 1 held * 3 (of another input), then the replica of the double is
// added. Compiled with or without overlap.
Program TwoStages(bool overlap) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId z = builder.Leaf(LeafKind::kInput, 1, DType::kF32, {4, 1, 1, 1}, "z");
  const NodeId tripled = builder.Name(builder.Scale(z, 3), "tripled");
  const NodeId there = builder.Copy(doubled, DType::kF32);
  builder.MarkOutput(builder.Name(builder.Add(there, tripled), "sum"));
  MachineForTest machine = SeparateMachine(2);
  machine.overlap = overlap;
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0, 1, 1, 1, 1}, machine);
  // Between "tripled" and the wait for the other device.
  std::vector<Command>& second = program.streams[1].commands;
  second.insert(second.begin() + 1, ObserveCommand{tripled, 0});
  return program;
}

class OverlapTest : public ::testing::Test {
 protected:
  using Hook = std::function<absl::Status(const Graph&, NodeId)>;

  void Start(Hook on_first, Hook on_second) {
    Hook hooks[] = {std::move(on_first), std::move(on_second)};
    for (size_t i = 0; i < 2; ++i) {
      FakeDeviceOptions options;
      options.name = i == 0 ? "fake0" : "fake1";
      options.seed = i + 1;
      options.before_node = std::move(hooks[i]);
      options.after_node = [this, i](const Graph& graph, NodeId id, const TensorPlace& place) {
        MutexLock lock(mutex_);
        ++done_[i];
        if (graph.node(id).name == "doubled") doubled_in_.push_back(place.buffer);
        changed_.NotifyAll();
      };
      fakes_.push_back(std::make_unique<FakeDevice>(std::move(options)));
    }
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    options.observer = std::move(observer_);
    options.edges = &edges_.port(0);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    for (const bool overlap : {false, true}) {
      ASSERT_OK_AND_ASSIGN(const ProgramId program, host_->Install(TwoStages(overlap)));
      ASSERT_OK_AND_ASSIGN(instances_[overlap], host_->Instantiate(program, {}));
    }
  }

  void TearDown() override {
    gate_.Open();
    Reset();
  }
  void Reset() {
    host_.reset();
    fakes_.clear();
    MutexLock lock(mutex_);
    done_[0] = done_[1] = 0;
  }

  // A hook that holds the device before that node.
  Hook HoldAt(const std::string& name) {
    return [this, name](const Graph& graph, NodeId id) {
      if (graph.node(id).name == name) gate_.Pass();
      return absl::OkStatus();
    };
  }

  void Launch(int64_t step, bool overlap = true) {
    const std::vector<uint8_t> x = Bytes(static_cast<float>(step));
    const std::vector<uint8_t> z = Bytes(static_cast<float>(10 * step));
    StepInput input;
    input.step = step;
    input.inputs = {x, z};
    ASSERT_OK(host_->Launch(instances_[overlap], input));
  }

  void ExpectResult(int64_t step) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(step, Soon()));
    EXPECT_EQ(
        output.outputs,
        (std::vector<std::vector<uint8_t>>{Bytes(static_cast<float>(2 * step + 3 * 10 * step))}))
        << "step " << step;
  }

  static std::vector<uint8_t> Bytes(float value) {
    const std::vector<float> values(4, value);
    std::vector<uint8_t> bytes(sizeof(float) * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  void AwaitDone(int device, int nodes) {
    MutexLock lock(mutex_);
    while (done_[device] < nodes) changed_.Wait(mutex_);
  }
  bool IsDoneWithin(int device, int nodes, std::chrono::milliseconds time) {
    const Clock::TimePoint deadline = SystemClock().Now() + time;
    MutexLock lock(mutex_);
    bool in_time = true;
    while (done_[device] < nodes && in_time) in_time = changed_.WaitUntil(mutex_, deadline);
    return done_[device] >= nodes;
  }
  int Done(int device) {
    MutexLock lock(mutex_);
    return done_[device];
  }
  std::vector<Buffer*> DoubledIn() {
    MutexLock lock(mutex_);
    return doubled_in_;
  }

  LoopbackEdges edges_{LoopbackOptions{.processes = 2}};  // the other process is the test
  Gate gate_;
  StepObserver observer_;  // set before Start
  Mutex mutex_;
  CondVar changed_;
  int done_[2] ABSL_GUARDED_BY(mutex_) = {0, 0};
  std::vector<Buffer*> doubled_in_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<LocalProgramHost> host_;
  InstanceId instances_[2];
};

// Device 0 finishes all four steps while device 1 has not copied anything of the first.
TEST_F(OverlapTest, FirstDevice_RunsAhead_SecondStillReadsItsOwnStep) {
  Start(nullptr, HoldAt("tripled"));
  for (int64_t step = 1; step <= 4; ++step) Launch(step);
  AwaitDone(0, 4);
  EXPECT_EQ(Done(1), 0);
  gate_.Open();
  for (int64_t step = 1; step <= 4; ++step) ExpectResult(step);
  EXPECT_EQ(host_->counters().launched, 4);
  EXPECT_EQ(host_->counters().overlapped, 3);
  const std::vector<Buffer*> buffers = DoubledIn();
  EXPECT_EQ(std::set<Buffer*>(buffers.begin(), buffers.end()).size(), 4u);
}

TEST_F(OverlapTest, StepsThatDoNotOverlap_WaitForAllDevices_AndAreWaitedFor) {
  for (const bool first_overlaps : {true, false}) {
    SCOPED_TRACE(first_overlaps ? "the second does not" : "the first does not");
    Gate gate;
    Start(nullptr, [&](const Graph&, NodeId) {
      gate.Pass();
      return absl::OkStatus();
    });
    Launch(1, first_overlaps);
    Launch(2, !first_overlaps);
    gate.AwaitArrival(1);
    AwaitDone(0, 1);
    EXPECT_FALSE(IsDoneWithin(0, 2, std::chrono::milliseconds(5)));
    gate.Open();
    ExpectResult(1);
    ExpectResult(2);
    EXPECT_EQ(host_->counters().overlapped, 0);
    Reset();
  }
}

// Device 1 comes to the event of step 1 when device 0 has recorded that of step 2, which is held:
// it does not wait for that.
TEST_F(OverlapTest, Events_AreThoseOfTheirStep) {
  Gate second_step, observed;
  observer_ = [&](int64_t step, int32_t, absl::Span<const uint8_t>) {
    if (step == 1) observed.Pass();
    return true;
  };
  int doubled = 0;
  Start(
      [&](const Graph&, NodeId) {
        if (++doubled == 2) second_step.Pass();
        return absl::OkStatus();
      },
      nullptr);
  Launch(1);
  Launch(2);
  second_step.AwaitArrival(1);
  observed.AwaitArrival(1);
  // The end of step 2 on device 0: all its commands are queued.
  while (fakes_[0]->traffic().synchronizations < 2) std::this_thread::yield();
  observed.Open();
  ExpectResult(1);
  second_step.Open();
  ExpectResult(2);
  Reset();
}

TEST_F(OverlapTest, Rotation_CountsUpInFlight_AndParksAtTheFirstCopy) {
  Start(nullptr, nullptr);
  for (int64_t step = 1; step <= 3; ++step) {
    Launch(step);
    ExpectResult(step);
  }
  for (int64_t step = 4; step <= 9; ++step) {
    Launch(step);
    if (step > 4) ExpectResult(step - 1);
  }
  ExpectResult(9);
  Launch(10);
  ExpectResult(10);
  const std::vector<Buffer*> b = DoubledIn();
  ASSERT_EQ(b.size(), 10u);
  EXPECT_EQ(b[1], b[0]);
  EXPECT_EQ(b[2], b[0]);
  // Steps 4 to 9 use copies 0, 1, 2, 3, 0, 1.
  EXPECT_EQ((std::vector<Buffer*>{b[3], b[7], b[9]}), std::vector<Buffer*>(3, b[0]));
  EXPECT_EQ(b[8], b[4]);
  EXPECT_EQ((std::set<Buffer*>{b[3], b[4], b[5], b[6]}).size(), 4u);
}

TEST_F(OverlapTest, OnlyCommandsAtCrossingSlots_ArePreparedPerCopy) {
  Start(nullptr, nullptr);
  // One each without overlap; with it "doubled" four times, "tripled" and "sum" once.
  EXPECT_EQ(fakes_[0]->traffic().prepared, 1 + 4);
  EXPECT_EQ(fakes_[1]->traffic().prepared, 2 + 2);
}

// A tensor that another device reads, and the host too: as an output and through the observer.
TEST_F(OverlapTest, WhatTheHostReadsOfACrossingTensor_IsOfItsStep) {
  std::map<int64_t, std::vector<uint8_t>> seen;
  observer_ = [&](int64_t step, int32_t tag, absl::Span<const uint8_t> bytes) {
    MutexLock lock(mutex_);
    if (tag == 1) seen[step].assign(bytes.begin(), bytes.end());
    return true;
  };
  Start(nullptr, HoldAt("tripled"));
  Program program = TwoStages(true);
  const auto doubled = std::find_if(program.graph.nodes().begin(), program.graph.nodes().end(),
                                    [](const Node& node) { return node.name == "doubled"; });
  const NodeId id{static_cast<int32_t>(doubled - program.graph.nodes().begin())};
  program.graph.mutable_node(id).output = true;
  program.outputs.push_back({id});
  std::vector<Command>& first = program.streams[0].commands;
  const auto compute = std::find_if(first.begin(), first.end(), [](const Command& command) {
    return std::holds_alternative<ComputeCommand>(command);
  });
  first.insert(compute + 1, ObserveCommand{id, 1});
  ASSERT_OK_AND_ASSIGN(const ProgramId installed, host_->Install(program));
  ASSERT_OK_AND_ASSIGN(instances_[true], host_->Instantiate(installed, {}));
  for (int64_t step = 1; step <= 4; ++step) Launch(step);
  AwaitDone(0, 4);  // the first device is four steps ahead, each in a copy of its own
  gate_.Open();
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(step, Soon()));
    EXPECT_EQ(output.outputs[1], Bytes(static_cast<float>(2 * step))) << "step " << step;
    MutexLock lock(mutex_);
    EXPECT_EQ(seen[step], Bytes(static_cast<float>(2 * step))) << "step " << step;
  }
}

// What comes from another process and is read by a second device: a copy per step, too.
TEST_F(OverlapTest, WhatIsReceivedIntoACrossingSlot_IsOfItsStep) {
  Start(nullptr, HoldAt("tripled"));
  Program program = TwoStages(true);
  for (Command& command : program.streams[0].commands) {
    if (!std::holds_alternative<ComputeCommand>(command)) continue;
    const NodeId id = std::get<ComputeCommand>(command).nodes[0];
    Node& node = program.graph.mutable_node(id);
    node.op = Op::kReceive;
    node.attributes = ReceiveAttributes{DType::kF32, {4, 1, 1, 1}};
    node.sources.clear();
    command = ReceiveCommand{id, program.places[Index(id)], 16, 0, 1};
  }
  ASSERT_OK_AND_ASSIGN(const ProgramId installed, host_->Install(program));
  ASSERT_OK_AND_ASSIGN(instances_[true], host_->Instantiate(installed, {}));
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_OK(edges_.port(1).Send(step, 0, 0, Bytes(static_cast<float>(2 * step))));
    Launch(step);
  }
  while (edges_.waiting(0) > 0) std::this_thread::yield();
  gate_.Open();
  for (int64_t step = 1; step <= 4; ++step) ExpectResult(step);
}

TEST_F(OverlapTest, CancelledStep_LeavesLaterOnesRunning) {
  Start(nullptr, HoldAt("tripled"));
  for (int64_t step = 1; step <= 4; ++step) Launch(step);
  AwaitDone(0, 4);
  ASSERT_OK(host_->Cancel(1));
  ASSERT_OK(host_->Cancel(3));
  gate_.Open();
  for (const int64_t step : {1, 3}) {
    EXPECT_THAT(host_->Await(step, Soon()),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("was cancelled")));
  }
  ExpectResult(2);
  ExpectResult(4);
  Launch(5);
  ExpectResult(5);
}

// A step fails on one device while others have started the next one; again and again.
TEST_F(OverlapTest, FailedSteps_LeaveLaterOnesRunning) {
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first ? "device 0 fails" : "device 1 fails");
    auto count = std::make_shared<std::atomic<int>>(0);
    const Hook fail = [count, first](const Graph& graph, NodeId id) -> absl::Status {
      if (graph.node(id).name != (first ? "doubled" : "tripled")) return absl::OkStatus();
      return count->fetch_add(1) % 3 == 1 ? absl::InternalError("smoke") : absl::OkStatus();
    };
    Start(fail, fail);
    for (int64_t step = 1; step <= 30; ++step) {
      Launch(step);
      const int64_t oldest = step - 3;
      if (oldest < 1) continue;
      if (oldest % 3 == 2) {
        EXPECT_THAT(host_->Await(oldest, Soon()),
                    StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
      } else {
        ExpectResult(oldest);
      }
    }
    Reset();
  }
}

TEST_F(OverlapTest, DestructionWithStepsInFlight_EndsThem) {
  for (int round = 0; round < 20; ++round) {
    Reset();
    Start(nullptr, nullptr);
    for (int64_t step = 1; step <= 4; ++step) Launch(step);
    host_.reset();
    EXPECT_EQ(fakes_[0]->used_bytes(), 0);
    EXPECT_EQ(fakes_[1]->used_bytes(), 0);
  }
}

}  // namespace
}  // namespace weft
