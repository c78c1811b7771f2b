// Many inputs, many devices, long names; and pipelines of passes.
#include "absl/strings/str_cat.h"
#include "common/program/program.h"
#include "coordinator/scheduler/program_compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

void ExpectCompiles(const PlanRig& rig) {
  ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(rig.context(), rig.result()));
  EXPECT_OK(VerifyProgram(program));
}

// Spec B.16: the reference's fixed arrays of graph inputs.
TEST(PlanLimits, ThreeHundredInputsIntoOneSplit) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  NodeId sum = rig.g.MulMat(rig.Weight("w", kMatrix, 0), rig.Input("x", kVector));
  std::vector<NodeId> made;
  for (int i = 0; i < 150; ++i) {
    const NodeId a = rig.g.Scale(rig.Input("a", kVector), 2);
    rig.input.pins.push_back({a, 1});
    made.push_back(a);
  }
  for (const NodeId a : made) sum = rig.g.Add(rig.g.Add(sum, a), rig.Input("b", kVector));
  rig.g.MarkOutput(rig.g.MulMat(rig.Weight("w", kMatrix, 0), sum));
  ASSERT_OK(rig.Plan());
  ASSERT_EQ(rig.result().plan.splits.size(), 3u);
  EXPECT_EQ(rig.result().plan.splits.back().inputs.size(), 300u);
  ExpectCompiles(rig);
}

TEST(PlanLimits, FortyDevices) {
  std::vector<RigDevice> devices;
  devices.reserve(40);
  for (int i = 0; i < 39; ++i)
    devices.push_back(Gpu(absl::StrCat("w", i, ".gpu0"), absl::StrCat("w", i)));
  devices.push_back(Cpu("local.cpu0"));
  PlanRig rig(devices);
  NodeId at = rig.Input("x", kVector);
  const NodeId shared = rig.Input("shared", kVector);
  for (int i = 0; i < 120; ++i) {
    at = rig.g.Add(rig.g.MulMat(rig.Weight("w", kMatrix, i / 3), at), shared);
  }
  rig.g.MarkOutput(at);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 40u);
  // One hand-off per boundary, and every device gets the shared input.
  int64_t tensors = 0;
  int64_t inputs = 0;
  for (const Replica& replica : rig.result().plan.replicas) {
    ++(replica.kind == ReplicaKind::kTensor ? tensors : inputs);
  }
  EXPECT_EQ(tensors, 39);
  EXPECT_EQ(inputs, 39 + 1);
  ExpectCompiles(rig);
}

// Identity is an id, never a name: neither long nor equal names confuse anything.
TEST(PlanLimits, NamesOf200Characters) {
  const std::string name(200, 'n');
  PlanRig rig({Gpu(name + "0"), Gpu(name + "1"), Cpu(name + "2")});
  const NodeId x = rig.g.Name(rig.Input("x", kVector), name);
  NodeId at = x;
  std::vector<NodeId> made;
  for (int i = 0; i < 6; ++i) {
    at = rig.g.Name(rig.g.MulMat(rig.Weight(name, kMatrix, i % 3), at), name);
    made.push_back(at);
  }
  for (const NodeId id : made) at = rig.g.Name(rig.g.Add(at, id), name);
  rig.g.MarkOutput(rig.g.MulMat(rig.Weight(name, kMatrix, 1), at));
  ASSERT_OK(rig.Plan());
  // The input, the chain's hand-offs, and of the sums on device 1 those that it has not seen yet.
  EXPECT_EQ(rig.result().plan.replicas.size(), 1u + 5u + 2u);
  ExpectCompiles(rig);
  for (const Node& node : rig.result().scheduled.graph.nodes()) EXPECT_LE(node.name.size(), 256u);
}

TEST(PlanLimits, EmptyGraphs_AndGraphsOfLeafsOnly) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 0u);
  rig.Input("x", kVector);
  rig.Weight("w", kMatrix, 0);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 0u);
}

TEST(PlanContext, RefusesWhatIsNoPlan) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId x = rig.Input("x", kVector);
  rig.g.MarkOutput(rig.g.Scale(x, 2));
  ASSERT_OK(rig.Plan());
  const auto error = [&](const std::function<void(PlanInput&)>& change) {
    PlanInput input = rig.input;
    change(input);
    const absl::Status status = PlanContext::Create(input).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error([](PlanInput& input) { input.graph = nullptr; }), HasSubstr("without a graph"));
  EXPECT_THAT(error([](PlanInput& input) { input.devices.clear(); }), HasSubstr("over 0 devices"));
  EXPECT_THAT(error([](PlanInput& input) { std::swap(input.devices[0], input.devices[1]); }),
              HasSubstr("the last device of a plan is a CPU, not gpu"));
  EXPECT_THAT(error([](PlanInput& input) { input.leafs.pop_back(); }),
              HasSubstr("1 places for 2 nodes"));
  EXPECT_THAT(error([&](PlanInput& input) { input.options.observed = {x}; }),
              HasSubstr("cannot be observed"));
  EXPECT_THAT(error([](PlanInput& input) { input.options.observed = {NodeId{7}}; }),
              HasSubstr("cannot be observed"));
}

// --- Devices in one memory ---

// What an accelerator computes there and what the processor computes there share replicas, and the
// host's inputs are put there by the processor's stream.
TEST(SharedMemory, Replicas_AreMadeOnce) {
  PlanRig rig(
      {Gpu("gpu"), Accelerator("w0.blas", "w0.cpu", "w0"), Cpu("w0.cpu", "w0"), Cpu("cpu")});
  const NodeId x = rig.Input("x", kVector);
  const NodeId a = rig.Named(rig.g.MulMat(rig.Weight("wa", kMatrix, 0), x), "a");
  const NodeId b = rig.Named(rig.g.Add(a, x), "b");
  const NodeId c = rig.Named(rig.g.Add(rig.g.Mul(a, x), b), "c");
  rig.g.MarkOutput(rig.g.Add(a, c));
  rig.input.pins = {{b, 1}, {c, 2}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Copies(), "input x -> gpu 32; tensor a -> w0.blas 32; input x -> w0.blas 32");
  ExpectCompiles(rig);
}

// An accelerator that computes nothing does not keep steps from overlapping.
TEST(SharedMemory, AnIdleAccelerator_DoesNotStopThePipeline) {
  PlanRig rig({Gpu("gpu0"), Gpu("gpu1"), Accelerator("blas", "cpu"), Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("wa", kMatrix, 0), rig.Input("x", kVector));
  rig.g.MarkOutput(rig.g.MulMat(rig.Weight("wb", kMatrix, 1), a));
  rig.input.options.pipeline = true;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().pipeline_refusal, "");
  EXPECT_EQ(rig.result().copies, 4);
  ExpectCompiles(rig);
}

// The refusal to pipeline two products, the second of them on the second device if `split`.
std::string PipelineRefusal(const std::vector<RigDevice>& devices, bool split) {
  PlanRig rig(devices);
  const NodeId a = rig.g.MulMat(rig.Weight("wa", kMatrix, 0), rig.Input("x", kVector));
  rig.g.MarkOutput(rig.g.MulMat(rig.Weight("wb", kMatrix, split ? 1 : 0), a));
  rig.input.options.pipeline = true;
  EXPECT_OK(rig.Plan());
  EXPECT_EQ(rig.result().copies, rig.result().pipeline_refusal.empty() ? 4 : 1);
  ExpectCompiles(rig);
  return rig.result().pipeline_refusal;
}

TEST(Pipeline, IsRefusedWithTheReason) {
  EXPECT_EQ(PipelineRefusal({Gpu("gpu0"), Gpu("gpu1"), Cpu("cpu")}, true), "");
  EXPECT_EQ(PipelineRefusal({Gpu("gpu0"), Cpu("cpu")}, false), "one device computes everything");
  RigDevice plain = Gpu("gpu1");
  plain.options.capabilities.events = false;
  EXPECT_EQ(PipelineRefusal({Gpu("gpu0"), plain, Cpu("cpu")}, true), "gpu1 has no events");
  plain.options.capabilities.async = false;
  EXPECT_EQ(PipelineRefusal({Gpu("gpu0"), plain, Cpu("cpu")}, true),
            "gpu1 has no asynchronous streams");
}

// A copy of the graph's own reads memory like any other node.
TEST(Pipeline, IsRefusedWhereADeviceReadsAnothersResult) {
  RigDevice unified = Gpu("gpu");
  unified.options.reads_host_memory = true;
  PlanRig rig({unified, Cpu("cpu")});
  const NodeId a = rig.g.Scale(rig.Input("x", kVector), 2);
  const NodeId copied = rig.Named(rig.g.Copy(a, DType::kF32), "copied");
  rig.g.MarkOutput(copied);
  rig.input.pins = {{a, 1}, {copied, 0}};
  rig.input.options.pipeline = true;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().pipeline_refusal, "node 2 (copy 'copied') reads memory of another device");
  ExpectCompiles(rig);
}

// --- The pipeline of passes ---

class Passes : public testing::Test {
 protected:
  Passes() {
    const NodeId y = rig_.g.MulMat(rig_.Weight("w", kMatrix, 0), rig_.Input("x", kVector));
    rig_.g.MarkOutput(rig_.g.Unary(y, UnaryKind::kSilu));
  }

  PlanRig rig_{{Gpu("gpu"), Cpu("cpu")}};
};

TEST_F(Passes, RunInOrder_AreTimedAndShown) {
  const SystemClock clock;
  std::vector<std::string> seen;
  PipelineOptions options;
  options.clock = &clock;
  options.after_pass = [&](const PassRecord& record, const Plan& plan) {
    seen.push_back(absl::StrCat(std::string(record.name), record.changed ? " changed" : ""));
    EXPECT_EQ(plan.splits.empty(), record.name != "cut");
  };
  ASSERT_OK(rig_.Plan(options));
  EXPECT_THAT(seen, ElementsAre("assign-pinned changed", "expand changed", "upgrade-or-guess",
                                "inherit", "cut changed"));
  for (const PassRecord& record : rig_.result().passes) EXPECT_GT(record.seconds, 0);
}

TEST_F(Passes, Some_CanBeSkipped) {
  PipelineOptions options;
  options.skip = {"expand", "upgrade-or-guess"};
  std::vector<std::string> seen;
  options.after_pass = [&](const PassRecord& record, const Plan&) {
    seen.emplace_back(record.name);
  };
  ASSERT_OK(rig_.Plan(options));
  EXPECT_EQ(rig_.At(NodeId{3}), "gpu 4.any");
  EXPECT_THAT(seen, ElementsAre("assign-pinned", "inherit", "cut"));
  EXPECT_TRUE(rig_.result().passes[1].skipped);
  EXPECT_FALSE(rig_.result().passes[3].skipped);
}

TEST_F(Passes, UnknownAndNeededOnes_CannotBeSkipped) {
  PipelineOptions options;
  options.skip = {"expnd"};
  EXPECT_THAT(rig_.Plan(options).message(), HasSubstr("no pass 'expnd' to skip"));
  for (const char* needed : {"inherit", "cut"}) {
    options.skip = {needed};
    EXPECT_EQ(rig_.Plan(options).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weft
