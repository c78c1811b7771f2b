#include "tests/unit/coordinator/scheduler/schedule_fixture.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coordinator/scheduler/plan_text.h"
#include "coordinator/scheduler/program_compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

bool OneIn(Random& random, int n) { return random.Between(0, n - 1) == 0; }

FakeDeviceOptions RandomFake(Random& random, int i) {
  FakeDeviceOptions options;
  options.name = absl::StrCat("fake", i);
  options.seed = static_cast<uint64_t>(random.Between(1, 1 << 20));
  options.offload_batch = OneIn(random, 2) ? random.Between(1, 4) : 0;
  if (OneIn(random, 3)) options.preferred_batch = {random.Between(1, 3), random.Between(3, 40)};
  for (int32_t op = 1; op < kOpCount; ++op) {
    if (OneIn(random, 6)) options.refused_ops.push_back(static_cast<Op>(op));
  }
  if (OneIn(random, 4)) options.refused_dtypes.push_back(DType::kF16);
  return options;
}

// Fills the bound slots from `host`; a leaf that nothing reads has none.
void Upload(const Graph& graph, HostGraph& host, const BoundSlots& bound) {
  for (const SlotBinding& binding : bound.bindings) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const LeafAttributes* leaf = graph.leaf(NodeId{i});
      if (leaf == nullptr || SlotKindOf(leaf->kind) != binding.kind || leaf->id != binding.id) {
        continue;
      }
      const auto bytes = host.bytes(NodeId{i});
      ASSERT_OK(binding.buffer->Set(binding.offset, bytes.data(), bytes.size()));
    }
  }
}

// Outputs of F32, byte for byte or to a few roundings.
void ExpectSame(const std::vector<uint8_t>& got, const std::vector<uint8_t>& want, bool exact) {
  ASSERT_EQ(got.size(), want.size());
  if (exact) {
    EXPECT_TRUE(got == want);
    return;
  }
  double error = 0;
  double size = 0;
  for (size_t at = 0; at + sizeof(float) <= got.size(); at += sizeof(float)) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, got.data() + at, sizeof(float));
    std::memcpy(&b, want.data() + at, sizeof(float));
    error += (static_cast<double>(a) - b) * (static_cast<double>(a) - b);
    size += static_cast<double>(b) * b;
  }
  EXPECT_LE(error, 1e-9 * size + 1e-12);
}

// Whether the device runs a tensor's op and all that write into it.
bool RunsAllIn(const Device& device, const Graph& graph, NodeId root) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph.Executes(NodeId{i}) || graph.Root(NodeId{i}) != root) continue;
    if (!device.Supports(graph, NodeId{i}).ok()) return false;
  }
  return true;
}

}  // namespace

RandomFleet MakeRandomFleet(Random& random, int fake_count) {
  RandomFleet fleet;
  for (int i = 0; i < fake_count; ++i) {
    fleet.owned.push_back(std::make_unique<FakeDevice>(RandomFake(random, i)));
  }
  FakeDeviceOptions options;
  options.name = "local.cpu0";
  options.kind = DeviceKind::kCpu;
  fleet.owned.push_back(std::make_unique<FakeDevice>(std::move(options)));
  for (const auto& device : fleet.owned) fleet.devices.push_back(device.get());
  return fleet;
}

PlanInput MakeRandomInput(Random& random, const Graph& graph, const RandomFleet& fleet) {
  PlanInput input;
  input.graph = &graph;
  input.devices = fleet.devices;
  input.leafs.resize(graph.nodes().size());
  input.batch = random.Between(1, 8);
  input.options.op_offload = OneIn(random, 2);
  input.options.staged_bytes_limit = random.Between(64, 2048);
  const auto last = static_cast<int64_t>(fleet.devices.size()) - 1;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (const LeafAttributes* leaf = graph.leaf(NodeId{i})) {
      if (leaf->kind == LeafKind::kInput || leaf->kind == LeafKind::kPageTable) continue;
      const bool weight = leaf->kind == LeafKind::kWeight;
      Device& home = *fleet.devices[OneIn(random, 3) ? last : random.Between(0, last)];
      // A cache must be where its store can run.
      Device& safe = weight ? home : *fleet.devices[last];
      input.leafs[i] = {&safe.buffer_type(), weight ? BufferUsage::kWeights : BufferUsage::kAny};
    } else if (graph.Executes(NodeId{i}) && graph.Root(NodeId{i}) == NodeId{i} &&
               OneIn(random, 20)) {
      const auto d = static_cast<int32_t>(random.Between(0, last));
      if (RunsAllIn(*fleet.devices[d], graph, NodeId{i})) input.pins.push_back({NodeId{i}, d});
    }
  }
  return input;
}

void CheckPlanAgainstOracle(Random& random, const Graph& graph, const PlanInput& input, int steps) {
  ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
  ASSERT_OK_AND_ASSIGN(const ExecutionPlan plan, MakeExecutionPlan(context, {}));
  SCOPED_TRACE(PlanText(context, plan));
  ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(context, plan));
  ASSERT_OK(VerifyProgram(program));

  // A fused op and its plain form may round differently.
  const bool exact = plan.scheduled.fused == 0 && plan.scheduled.resolved == 0;
  HostGraph host(graph);
  FillLeafs(random, graph, host);
  const BoundSlots bound = BindForTest(program, input.devices);
  Upload(graph, host, bound);
  LocalProgramHostOptions options;
  options.devices = input.devices;
  ASSERT_OK_AND_ASSIGN(const auto executor, LocalProgramHost::Create(std::move(options)));
  ASSERT_OK_AND_ASSIGN(const ProgramId id, executor->Install(program));
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, executor->Instantiate(id, bound.bindings));
  for (int64_t step = 1; step <= steps; ++step) {
    StepInput launch;
    launch.step = step;
    const std::vector<std::vector<uint8_t>> bytes = InputBytes(graph, host);
    launch.inputs = Spans(bytes);
    launch.table_updates = TableContent(graph, host);
    ASSERT_OK(executor->Launch(instance, launch));
    ASSERT_OK(host.Run());
    const std::vector<std::vector<uint8_t>> want = OutputBytes(graph, host);
    ASSERT_OK_AND_ASSIGN(const StepOutput output, executor->Await(step, Soon()));
    ASSERT_EQ(output.outputs.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ExpectSame(output.outputs[i], want[i], exact);
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step << ", output " << i;
    }
  }
}

}  // namespace weft
