// Random graphs cut at random over fake devices compute what the oracle computes.
#include "common/program/loopback_edges.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

template <typename T>
int CountCommands(const Program& program) {
  int count = 0;
  for (const Stream& stream : program.streams) {
    for (const Command& command : stream.commands) count += std::holds_alternative<T>(command);
  }
  return count;
}

// A random graph on random devices of a machine, and the oracle beside it.
class Cut {
 public:
  Cut(uint64_t seed, MachineForTest machine, std::vector<std::unique_ptr<FakeDevice>> fakes)
      : random_(seed),
        graph_(MakeRandomGraph(random_, 40)),
        oracle_(graph_),
        machine_(std::move(machine)),
        fakes_(std::move(fakes)),
        edges_(LoopbackOptions{}) {}

  // Devices one after another through the graph, as stages of a pipeline, instead of at random.
  void UseStages() { stages_ = true; }

  void Start() {
    ASSERT_OK(VerifyGraph(graph_));
    const auto count = static_cast<int32_t>(machine_.devices.size());
    std::vector<int32_t> devices;
    devices.reserve(graph_.nodes().size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      devices.push_back(stages_ ? i * count / graph_.size()
                                : static_cast<int32_t>(random_.Between(0, count - 1)));
    }
    const PlacedGraph placed = InsertCopies(graph_, devices, machine_);
    program_ = CompileForTest(placed.graph, placed.devices, machine_);
    ASSERT_OK(VerifyProgram(program_));
    FillLeafs(random_, graph_, oracle_);
    bound_ = BindForTest(program_, Borrow(fakes_));
    UploadBound(graph_, oracle_, bound_);
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    options.edges = &edges_.port(0);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(const ProgramId id, host_->Install(program_));
    ASSERT_OK_AND_ASSIGN(instance_, host_->Instantiate(id, bound_.bindings));
  }

  // With new inputs and page tables; the weights stay and the caches carry over.
  void Launch() {
    HostGraph fresh(graph_);
    FillLeafs(random_, graph_, fresh);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* leaf = graph_.leaf(NodeId{i});
      if (leaf == nullptr) continue;
      if (leaf->kind != LeafKind::kInput && leaf->kind != LeafKind::kPageTable) continue;
      const auto from = fresh.bytes(NodeId{i});
      std::copy(from.begin(), from.end(), oracle_.bytes(NodeId{i}).begin());
    }
    StepInput input;
    input.step = ++launched_;
    std::vector<std::vector<uint8_t>> bytes = InputBytes(graph_, oracle_);
    input.inputs = Spans(bytes);
    input.table_updates = TableContent(graph_, oracle_);
    input.page_copies = CopySomePages();
    ASSERT_OK(host_->Launch(instance_, input));
    // INV-B13: what the caller does with its inputs after Launch does not matter.
    for (std::vector<uint8_t>& value : bytes) std::fill(value.begin(), value.end(), 0xFF);
    ASSERT_OK(oracle_.Run());
    wanted_.push_back(OutputBytes(graph_, oracle_));
  }

  // Of caches at random, and the same in the oracle.
  std::vector<PageCopy> CopySomePages() {
    std::vector<PageCopy> copies;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* leaf = graph_.leaf(NodeId{i});
      if (leaf == nullptr || leaf->kind != LeafKind::kCache || random_.Between(0, 1) == 0) continue;
      const auto from = static_cast<int32_t>(random_.Between(0, 1));
      const int64_t page_bytes = graph_.layout(NodeId{i}).nb[3];  // two pages
      copies.push_back({leaf->id, from, 1 - from, page_bytes});
      const auto pages = oracle_.bytes(NodeId{i});
      std::copy_n(pages.begin() + from * page_bytes, page_bytes,
                  pages.begin() + (1 - from) * page_bytes);
    }
    return copies;
  }

  void Check() {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, host_->Await(++checked_, Soon()));
    const auto& want = wanted_[static_cast<size_t>(checked_ - 1)];
    ASSERT_EQ(output.outputs.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(output.outputs[i] == want[i]) << "step " << checked_ << ", output " << i;
    }
  }

  // Keeps as many steps in flight as there may be.
  void Run(int steps) {
    Start();
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      if (launched_ - checked_ == kMaxStepsInFlight) Check();
      Launch();
    }
    while (checked_ < launched_ && !testing::Test::HasFatalFailure()) Check();
  }

  const Program& program() const { return program_; }
  HostCounters counters() { return host_->counters(); }
  LoopbackEdges& edges() { return edges_; }

 private:
  Random random_;
  const Graph graph_;
  HostGraph oracle_;
  const MachineForTest machine_;
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  LoopbackEdges edges_;
  bool stages_ = false;
  Program program_;
  BoundSlots bound_;
  std::unique_ptr<LocalProgramHost> host_;
  InstanceId instance_{};
  int64_t launched_ = 0;
  int64_t checked_ = 0;
  std::vector<std::vector<std::vector<uint8_t>>> wanted_;
};

bool Failed() { return testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure(); }

TEST(ExecutorRandom, AnyCut_EqualsTheOracle) {
  const uint64_t seed = TestSeed(1);
  int experts = 0;
  for (uint64_t i = 0; i < 16 && !Failed(); ++i) {
    for (const int devices : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed + i << ", " << devices << " devices");
      MachineForTest machine = SeparateMachine(devices);
      machine.copy_experts = i % 2 == 1;
      Cut cut(seed + i, std::move(machine), MakeFakeDevices(devices, seed + i));
      cut.Run(3);
      experts += CountCommands<CopyExpertsCommand>(cut.program());
    }
  }
  EXPECT_GT(experts, 0);
}

// INV-B11: with delays in every stream, overlapping steps give what steps one by one give.
TEST(ExecutorRandom, OverlappingSteps_EqualTheOracle) {
  const uint64_t seed = TestSeed(1);
  int experts = 0;
  int64_t overlapped = 0;
  for (uint64_t i = 0; i < 12 && !Failed(); ++i) {
    for (const int devices : {2, 3}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed + i << ", " << devices << " devices");
      MachineForTest machine = SeparateMachine(devices);
      machine.overlap = true;
      machine.copy_experts = i % 2 == 1;
      Cut cut(seed + i, std::move(machine), MakeFakeDevices(devices, seed + i));
      if (i % 3 > 0) cut.UseStages();
      cut.Run(10);
      if (Failed()) return;
      experts += CountCommands<CopyExpertsCommand>(cut.program());
      EXPECT_EQ(cut.counters().launched, 10);
      overlapped += cut.counters().overlapped;
    }
  }
  EXPECT_GT(experts, 0);
  EXPECT_GT(overlapped, 0);
}

// What crosses devices goes by messages of the process to itself.
TEST(ExecutorRandom, Messages_EqualTheOracle) {
  const uint64_t seed = TestSeed(1);
  int64_t messages = 0;
  for (uint64_t i = 0; i < 16 && !Failed(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    const int devices = i % 4 < 2 ? 2 : 3;
    MachineForTest machine = i % 8 == 7 ? SharingMachine() : SeparateMachine(devices);
    machine.overlap = i % 2 == 0;
    machine.edges = true;
    machine.copy_experts = i % 3 == 0;
    Cut cut(seed + i, std::move(machine),
            i % 8 == 7 ? MakeSharingDevices(seed + i) : MakeFakeDevices(devices, seed + i));
    if (i % 4 > 1) cut.UseStages();
    cut.Run(8);
    if (Failed()) return;
    const int64_t sends = CountCommands<SendCommand>(cut.program());
    EXPECT_EQ(cut.edges().traffic(0, 0).messages, 8 * sends);
    EXPECT_EQ(cut.edges().waiting(0), 0);
    messages += sends;
  }
  EXPECT_GT(messages, 0);
}

// An accelerator computes in the host's memory, a third device reaches it.
TEST(ExecutorRandom, SharedMemory_EqualsTheOracle) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < 24 && !Failed(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    MachineForTest machine = SharingMachine();
    machine.copy_experts = i % 2 == 1;
    Cut cut(seed + i, std::move(machine), MakeSharingDevices(seed + i));
    cut.Run(5);
    if (Failed()) return;
    EXPECT_EQ(cut.counters().overlapped, 0);
  }
}

}  // namespace
}  // namespace weft
