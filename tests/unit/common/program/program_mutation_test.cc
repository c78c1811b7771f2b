// Programs changed at random: refused, or safe to run.
#include <chrono>
#include <limits>

#include "common/program/loopback_edges.h"
#include "common/program/program_checks.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/program/collective_program.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

class ProgramMutator {
 public:
  ProgramMutator(Random& random, Program& program) : random_(random), program_(program) {}

  void Mutate() {
    switch (random_.Between(0, 9)) {
      case 0:
        return MutateSlot(Pick(program_.slots));
      case 1:
      case 2:
        return MutatePlace(Pick(program_.places));
      case 3:
        program_.event_count += Coin() ? 1 : -1;
        return;
      case 4:
        Integer(Pick(program_.streams).device);
        return;
      case 5:
        if (!program_.communicators.empty() && Coin()) {
          return MutateRank(Pick(Pick(program_.communicators).ranks));
        }
        return MutateDevice(Pick(program_.devices).memories);
      case 6:
        program_.copies = program_.copies == 1 ? kMaxStepsInFlight : 1;
        return;
      case 7:
        return MutateStream(Pick(program_.streams).commands);
      default:
        return MutateCommands(Pick(program_.streams).commands);
    }
  }

 private:
  bool Coin() { return random_.Between(0, 1) == 1; }
  template <typename T>
  T& Pick(std::vector<T>& values) {
    return values[random_.Between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  template <typename T>
  void Integer(T& value) {
    static constexpr int64_t kValues[] = {-1,
                                          0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          64,
                                          128,
                                          4096,
                                          int64_t{1} << 31,
                                          int64_t{1} << 41,
                                          std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min()};
    value = static_cast<T>(kValues[random_.Between(0, 12)]);
  }
  void MutateSlot(Slot& slot) {
    switch (random_.Between(0, 3)) {
      case 0:
        slot.kind = static_cast<SlotKind>(random_.Between(0, 7));
        return;
      case 1:
        return Integer(slot.id);
      case 2:
        return Integer(slot.device);
      default:
        return Integer(slot.bytes);
    }
  }
  void MutateDevice(std::vector<int32_t>& memories) {
    const auto device = static_cast<int32_t>(random_.Between(-1, 3));
    if (Coin()) return memories.push_back(device);
    if (!memories.empty()) Pick(memories) = device;
  }
  void MutatePlace(SlotPlace& place) {
    if (Coin()) return Integer(place.slot);
    if (Coin()) return Integer(place.offset);
    place = Pick(program_.places);
  }
  // Drops, doubles or swaps commands.
  void MutateStream(std::vector<Command>& commands) {
    if (commands.empty()) return;
    const int64_t i = random_.Between(0, static_cast<int64_t>(commands.size()) - 1);
    const int64_t j = random_.Between(0, static_cast<int64_t>(commands.size()) - 1);
    switch (random_.Between(0, 2)) {
      case 0:
        commands.erase(commands.begin() + i);
        return;
      case 1:
        commands.insert(commands.begin() + i, Command(commands[j]));
        return;
      default:
        std::swap(commands[i], commands[j]);
    }
  }
  NodeId AnyNode() { return NodeId{static_cast<int32_t>(random_.Between(-1, 60))}; }
  int32_t AnyEvent() { return static_cast<int32_t>(random_.Between(-1, program_.event_count)); }
  void MutateCommands(std::vector<Command>& commands) {
    if (commands.empty()) return;
    std::visit([this](auto& command) { MutateCommand(command); }, Pick(commands));
  }
  void MutateCommand(ComputeCommand& compute) {
    if (compute.nodes.empty()) return;
    if (Coin()) return std::swap(Pick(compute.nodes), Pick(compute.nodes));
    Pick(compute.nodes) = AnyNode();
  }
  void MutateCommand(CopyCommand& copy) {
    if (Coin()) return MutatePlace(Coin() ? copy.source : copy.destination);
    if (Coin()) return Integer(copy.bytes);
    copy.node = AnyNode();
  }
  void MutateCommand(CopyExpertsCommand& experts) {
    if (Coin()) {
      experts.ids = AnyNode();
      if (Index(experts.ids) >= 0 && Index(experts.ids) < program_.graph.size()) {
        experts.ids_place = program_.places[Index(experts.ids)];
      }
      return;
    }
    if (Coin()) return MutatePlace(Coin() ? experts.source : experts.ids_place);
    if (Coin()) return MutatePlace(experts.destination);
    experts.node = AnyNode();
  }
  void MutateCommand(ObserveCommand& observe) { observe.node = AnyNode(); }
  void MutateRank(CommunicatorRank& rank) {
    if (Coin()) return Integer(rank.host);
    rank.process = static_cast<int32_t>(random_.Between(-1, 4));
    rank.device = static_cast<int32_t>(random_.Between(-1, 3));
  }
  void MutateCommand(CollectiveCommand& collective) {
    if (Coin()) return MutatePlace(Coin() ? collective.source : collective.destination);
    if (Coin()) return Integer(collective.bytes);
    if (Coin()) {
      collective.detached = !collective.detached;
      return;
    }
    if (Coin()) {
      collective.algorithm = static_cast<CollectiveAlgorithm>(random_.Between(0, 4));
      return;
    }
    collective.node = AnyNode();
  }
  void MutateCommand(FinishCommand& finish) { finish.node = AnyNode(); }
  void MutateCommand(SendCommand& send) { MutateEdge(send, send.source); }
  void MutateCommand(ReceiveCommand& receive) { MutateEdge(receive, receive.destination); }
  template <typename EdgeCommand>
  void MutateEdge(EdgeCommand& command, SlotPlace& place) {
    switch (random_.Between(0, 4)) {
      case 0:
        return Integer(command.edge);
      case 1:
        return Integer(command.peer);
      case 2:
        return Integer(command.bytes);
      case 3:
        return MutatePlace(place);
      default:
        command.node = AnyNode();
        if (Index(command.node) < 0 || Index(command.node) >= program_.graph.size()) return;
        place = program_.places[Index(command.node)];
        command.bytes = *ByteExtent(program_.graph.layout(command.node));
    }
  }
  void MutateCommand(RecordCommand& record) { record.event = AnyEvent(); }
  void MutateCommand(WaitCommand& wait) { wait.event = AnyEvent(); }

  Random& random_;
  Program& program_;
};

// Runs a few steps of a program that verified; they may fail, but by a status.
void RunSafely(const Program& program, const std::vector<std::unique_ptr<FakeDevice>>& fakes) {
  int64_t bytes = 0;
  for (const Slot& slot : program.slots) bytes += std::min(slot.bytes, int64_t{1} << 24);
  if (bytes > (1 << 24)) return;
  const BoundSlots bound = BindForTest(program, Borrow(fakes));
  LocalProgramHostOptions options;
  options.devices = Borrow(fakes);
  options.observer = [](int64_t, int32_t, absl::Span<const uint8_t>) { return true; };
  LoopbackEdges edges({.processes = 3});
  options.edges = &edges.port(0);
  LoopbackEdges collectives({.processes = 3});
  options.collectives = &collectives.port(0);
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  ASSERT_OK_AND_ASSIGN(const ProgramId id, host->Install(program));
  const absl::StatusOr<InstanceId> instance = host->Instantiate(id, bound.bindings);
  if (!instance.ok()) return;
  std::map<int32_t, std::vector<uint8_t>> by_id;
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::kInput) by_id[slot.id].resize(static_cast<size_t>(slot.bytes));
  }
  StepInput input;
  // Of messages that never come; those to itself often do.
  input.deadline = SystemClock().Now() + std::chrono::milliseconds(20);
  for (const auto& [input_id, value] : by_id) input.inputs.push_back(value);
  for (input.step = 1; input.step <= 3; ++input.step) ASSERT_OK(host->Launch(*instance, input));
  for (int64_t step = 1; step <= 3; ++step) host->Await(step, Soon()).status().IgnoreError();
}

enum class Kind { kSeparate, kSharing, kOverlapping, kMessages };

// Programs of that kind with expert copies, and with each result shown where it was computed.
void CheckKind(Kind kind) {
  const uint64_t seed = TestSeed(1);
  int accepted = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, 15);
    MachineForTest machine = kind == Kind::kSharing ? SharingMachine() : SeparateMachine(2);
    machine.overlap = kind == Kind::kOverlapping;
    machine.edges = kind == Kind::kMessages;
    machine.copy_experts = true;
    std::vector<int32_t> devices;
    devices.reserve(graph.nodes().size());
    for (int32_t n = 0; n < graph.size(); ++n) {
      devices.push_back(static_cast<int32_t>(random.Between(0, machine.devices.size() - 1)));
    }
    const PlacedGraph placed = InsertCopies(graph, devices, machine);
    Program program = CompileForTest(placed.graph, placed.devices, machine);
    const std::vector<int32_t> streams = StreamOfOutputs(program);
    for (size_t k = 0; k < streams.size(); ++k) {
      program.streams[streams[k]].commands.emplace_back(
          ObserveCommand{program.outputs[k].node, static_cast<int32_t>(k)});
    }
    ASSERT_OK(VerifyProgram(program));
    const auto fakes =
        kind == Kind::kSharing ? MakeSharingDevices(seed + i) : MakeFakeDevices(2, seed + i);
    for (int change = 0; change < 100; ++change) {
      Program mutated = program;
      ProgramMutator(random, mutated).Mutate();
      if (mutated == program || !VerifyProgram(mutated).ok()) continue;
      if (++accepted % 8 == 0) RunSafely(mutated, fakes);
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(ProgramMutation, AnyChange_IsRefusedOrRunsSafely) { CheckKind(Kind::kSeparate); }
TEST(ProgramMutation, AnyChangeInSharedMemory_IsRefusedOrRunsSafely) { CheckKind(Kind::kSharing); }
TEST(ProgramMutation, AnyChangeOfOverlappingSteps_IsRefusedOrRunsSafely) {
  CheckKind(Kind::kOverlapping);
}

TEST(ProgramMutation, AnyChangeOfCollectives_IsRefusedOrRunsSafely) {
  const uint64_t seed = TestSeed(1);
  RankedProgramOptions options;
  options.process_of_rank = {0, 0, 0};
  options.counts = {2, 0, 1};
  const Program program = RankedProgram(options);
  ASSERT_OK(VerifyProgram(program));
  const auto fakes = MakeFakeDevices(3, seed);
  int accepted = 0;
  Random random(seed);
  for (int change = 0; change < 2000; ++change) {
    Program mutated = program;
    ProgramMutator(random, mutated).Mutate();
    if (mutated == program || !VerifyProgram(mutated).ok()) continue;
    if (++accepted % 8 == 0) RunSafely(mutated, fakes);
  }
  EXPECT_GT(accepted, 0);
}

TEST(ProgramMutation, AnyChangeOfMessages_IsRefusedOrRunsSafely) { CheckKind(Kind::kMessages); }

}  // namespace
}  // namespace weft
