// Programs changed at random: refused, or safe to run.
#include <limits>

#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

class ProgramMutator {
 public:
  ProgramMutator(Random& random, Program& program) : random_(random), program_(program) {}

  void Mutate() {
    switch (random_.Between(0, 7)) {
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
        slot.kind = static_cast<SlotKind>(random_.Between(0, 6));
        return;
      case 1:
        return Integer(slot.id);
      case 2:
        return Integer(slot.device);
      default:
        return Integer(slot.bytes);
    }
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
  void MutateCommands(std::vector<Command>& commands) {
    if (commands.empty()) return;
    Command& command = Pick(commands);
    if (auto* compute = std::get_if<ComputeCommand>(&command)) {
      if (compute->nodes.empty()) return;
      if (Coin()) return std::swap(Pick(compute->nodes), Pick(compute->nodes));
      Pick(compute->nodes) = NodeId{static_cast<int32_t>(random_.Between(-1, 60))};
    } else if (auto* copy = std::get_if<CopyCommand>(&command)) {
      if (Coin()) return MutatePlace(Coin() ? copy->source : copy->destination);
      if (Coin()) return Integer(copy->bytes);
      copy->node = NodeId{static_cast<int32_t>(random_.Between(-1, 60))};
    } else if (auto* record = std::get_if<RecordCommand>(&command)) {
      record->event = static_cast<int32_t>(random_.Between(-1, program_.event_count));
    } else {
      std::get<WaitCommand>(command).event =
          static_cast<int32_t>(random_.Between(-1, program_.event_count));
    }
  }

  Random& random_;
  Program& program_;
};

// Runs one step of a program that verified; it may fail, but by a status.
void RunSafely(const Program& program, uint64_t seed) {
  int64_t bytes = 0;
  for (const Slot& slot : program.slots) bytes += std::min(slot.bytes, int64_t{1} << 24);
  if (bytes > (1 << 24)) return;
  const auto fakes = MakeFakeDevices(2, seed);
  const BoundSlots bound = BindForTest(program, Borrow(fakes));
  LocalProgramHostOptions options;
  options.devices = Borrow(fakes);
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
  ASSERT_OK_AND_ASSIGN(const ProgramId id, host->Install(program));
  const absl::StatusOr<InstanceId> instance = host->Instantiate(id, bound.bindings);
  if (!instance.ok()) return;
  std::map<int32_t, std::vector<uint8_t>> by_id;
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::kInput) by_id[slot.id].resize(static_cast<size_t>(slot.bytes));
  }
  StepInput input;
  input.step = 1;
  for (const auto& [input_id, value] : by_id) input.inputs.push_back(value);
  ASSERT_OK(host->Launch(*instance, input));
  host->Await(1, Soon()).status().IgnoreError();
}

TEST(ProgramMutation, AnyChange_IsRefusedOrRunsSafely) {
  const uint64_t seed = TestSeed(1);
  int accepted = 0;
  for (uint64_t i = 0; i < 30; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed + i);
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, 15);
    std::vector<int32_t> devices;
    devices.reserve(static_cast<size_t>(graph.size()));
    for (int32_t n = 0; n < graph.size(); ++n) {
      devices.push_back(static_cast<int32_t>(random.Between(0, 1)));
    }
    const PlacedGraph placed = InsertCopies(graph, devices);
    const Program program = CompileForTest(placed.graph, placed.devices, 2);
    ASSERT_OK(VerifyProgram(program));
    for (int change = 0; change < 100; ++change) {
      Program mutated = program;
      ProgramMutator(random, mutated).Mutate();
      if (mutated == program || !VerifyProgram(mutated).ok()) continue;
      if (++accepted % 8 == 0) RunSafely(mutated, seed + i);
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weft
