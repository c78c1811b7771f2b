// Random graphs cut at random over fake devices compute what the oracle computes.
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

// Three steps with new inputs each; the caches carry over.
void CheckCut(uint64_t seed, int device_count) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << device_count << " devices");
  Random random(seed);
  const Graph graph = MakeRandomGraph(random, 40);
  ASSERT_OK(VerifyGraph(graph));
  std::vector<int32_t> devices;
  devices.reserve(static_cast<size_t>(graph.size()));
  for (int32_t i = 0; i < graph.size(); ++i) {
    devices.push_back(static_cast<int32_t>(random.Between(0, device_count - 1)));
  }
  PlacedGraph placed = InsertCopies(graph, devices);
  const Program program = CompileForTest(placed.graph, placed.devices, device_count);
  ASSERT_OK(VerifyProgram(program));

  const auto fakes = MakeFakeDevices(device_count, seed);
  HostGraph host(graph);
  FillLeafs(random, graph, host);
  const BoundSlots bound = BindForTest(program, Borrow(fakes));
  UploadBound(graph, host, bound);
  LocalProgramHostOptions options;
  options.devices = Borrow(fakes);
  ASSERT_OK_AND_ASSIGN(const auto executor, LocalProgramHost::Create(std::move(options)));
  ASSERT_OK_AND_ASSIGN(const ProgramId id, executor->Install(program));
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, executor->Instantiate(id, bound.bindings));
  std::vector<std::vector<std::vector<uint8_t>>> wanted;
  for (int64_t step = 1; step <= 3; ++step) {
    // The weights stay, everything else is new.
    HostGraph fresh(graph);
    FillLeafs(random, graph, fresh);
    for (int32_t i = 0; i < graph.size(); ++i) {
      const LeafAttributes* leaf = graph.leaf(NodeId{i});
      if (leaf == nullptr) continue;
      if (leaf->kind != LeafKind::kInput && leaf->kind != LeafKind::kPageTable) continue;
      const auto from = fresh.bytes(NodeId{i});
      std::copy(from.begin(), from.end(), host.bytes(NodeId{i}).begin());
    }
    StepInput input;
    input.step = step;
    std::vector<std::vector<uint8_t>> bytes = InputBytes(graph, host);
    input.inputs = Spans(bytes);
    input.table_updates = TableContent(graph, host);
    ASSERT_OK(executor->Launch(instance, input));
    // INV-B13: what the caller does with its inputs after Launch does not matter.
    for (std::vector<uint8_t>& value : bytes) std::fill(value.begin(), value.end(), 0xFF);
    ASSERT_OK(host.Run());
    wanted.push_back(OutputBytes(graph, host));
  }
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, executor->Await(step, Soon()));
    const auto& want = wanted[static_cast<size_t>(step - 1)];
    ASSERT_EQ(output.outputs.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(output.outputs[i] == want[i]) << "step " << step << ", output " << i;
    }
  }
}

TEST(ExecutorRandom, AnyCut_EqualsTheOracle) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < 16; ++i) {
    for (const int devices : {1, 2, 3}) CheckCut(seed + i, devices);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft
