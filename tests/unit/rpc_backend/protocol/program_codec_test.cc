#include "rpc_backend/protocol/program_codec.h"

#include <set>

#include "common/base/random.h"
#include "proto/program.pb.h"
#include "tests/support/program_for_test.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

proto::Program SampleMessage() {
  proto::Program message;
  message.ParseFromString(EncodeProgram(SampleProgram()));
  return message;
}

// Refused with a message that has both texts, after that change.
void CheckRefused(const std::function<void(proto::Program&)>& change, const std::string& first,
                  const std::string& second) {
  proto::Program message = SampleMessage();
  change(message);
  EXPECT_THAT(DecodeProgram(message.SerializeAsString()),
              StatusIs(kBad, AllOf(HasSubstr(first), HasSubstr(second))));
}

TEST(ProgramCodec, Samples_CoverEveryCommandAndSlotKind) {
  std::set<size_t> alternatives;
  for (const Command& command : SampleCommands()) alternatives.insert(command.index());
  EXPECT_EQ(alternatives.size(), std::variant_size_v<Command>)
      << "a struct of Command has no sample in wire_samples.cc";
  std::set<int> fields;
  const proto::Program message = SampleMessage();
  for (const proto::Stream& stream : message.streams()) {
    for (const proto::Command& command : stream.commands()) fields.insert(command.command_case());
  }
  EXPECT_EQ(static_cast<int>(fields.size()),
            proto::Command::descriptor()->FindOneofByName("command")->field_count());
}

TEST(ProgramCodec, EveryCommand_ComesBackEqual) {
  const Program program = SampleProgram();
  ASSERT_OK_AND_ASSIGN(const Program decoded, DecodeProgram(EncodeProgram(program)));
  EXPECT_EQ(decoded.streams, program.streams);
  EXPECT_EQ(decoded.slots, program.slots);
  EXPECT_EQ(decoded.places, program.places);
  EXPECT_EQ(decoded.devices, program.devices);
  EXPECT_EQ(decoded, program);
}

TEST(ProgramCodec, RandomPrograms_ComeBackEqualAndLegal) {
  Random random(TestSeed(72));
  for (uint64_t i = 0; i < TestCount(100); ++i) {
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(1, 20)));
    const auto count = static_cast<int32_t>(random.Between(1, 4));
    std::vector<int32_t> devices;
    for (int32_t n = 0; n < graph.size(); ++n) {
      devices.push_back(static_cast<int32_t>(random.Between(0, count - 1)));
    }
    const PlacedGraph placed = InsertCopies(graph, devices);
    const Program program = CompileForTest(placed.graph, placed.devices, count);
    const std::string bytes = EncodeProgram(program);
    ASSERT_OK_AND_ASSIGN(const Program decoded, DecodeProgram(bytes));
    ASSERT_EQ(decoded, program);
    ASSERT_OK(VerifyProgram(decoded));
    ASSERT_EQ(EncodeProgram(decoded), bytes);
  }
}

TEST(ProgramCodec, EmptyProgram_ComesBack) {
  ASSERT_OK_AND_ASSIGN(const Program decoded, DecodeProgram(EncodeProgram(Program())));
  EXPECT_EQ(decoded, Program());
}

TEST(ProgramCodec, WrongSlotsAndDevices_AreRefusedByName) {
  using P = proto::Program;
  CheckRefused([](P& p) { p.mutable_slots(2)->set_kind(6); }, "slot 2:", "'kind' = 6");
  CheckRefused([](P& p) { p.mutable_slots(2)->set_id(-2); }, "slot 2:", "'id' = -2");
  CheckRefused([](P& p) { p.mutable_slots(2)->set_device(-2); }, "slot 2:", "'device' = -2");
  CheckRefused([](P& p) { p.mutable_slots(2)->set_bytes(-2); }, "slot 2:", "'bytes' = -2");
  CheckRefused([](P& p) { p.mutable_places(3)->set_slot(-1); }, "place 3:", "'place' = -1");
  CheckRefused([](P& p) { p.mutable_places(3)->set_offset(-1); }, "place 3:", "negative offset");
  CheckRefused([](P& p) { p.mutable_devices(1)->set_name("\t"); }, "device 1:", "'name'");
  CheckRefused([](P& p) { p.mutable_devices(1)->add_memories(64); }, "device 1:", "'memories'");
  CheckRefused([](P& p) { p.set_event_count(-1); }, "'event_count' = -1", "");
  CheckRefused([](P& p) { p.set_copies(0); }, "'copies' = 0", "");
  CheckRefused([](P& p) { p.set_outputs(1, -1); }, "'outputs' = -1", "");
  CheckRefused([](P& p) { p.mutable_graph()->mutable_nodes(0)->set_layer(-4); }, "node 0 (leaf",
               "'layer' = -4");
}

TEST(ProgramCodec, WrongCommands_AreRefusedByName) {
  const auto check = [](int command, void (*change)(proto::Command&), const std::string& why) {
    CheckRefused(
        [&](proto::Program& p) { change(*p.mutable_streams(0)->mutable_commands(command)); },
        "stream 0: command " + std::to_string(command), why);
  };
  check(
      0, [](proto::Command& c) { c.mutable_compute()->set_nodes(1, -1); }, "'nodes' = -1");
  check(
      1, [](proto::Command& c) { c.mutable_copy()->set_node(-1); }, "'node' = -1");
  check(
      1, [](proto::Command& c) { c.mutable_copy()->set_bytes(-1); }, "'bytes' = -1");
  check(
      1, [](proto::Command& c) { c.mutable_copy()->mutable_source()->set_slot(-1); },
      "'source' = -1");
  check(
      2, [](proto::Command& c) { c.mutable_copy_experts()->set_ids(-1); }, "'ids' = -1");
  check(
      3, [](proto::Command& c) { c.mutable_observe()->set_node(-1); }, "'node' = -1");
  check(
      4, [](proto::Command& c) { c.mutable_record()->set_event(-1); }, "'event' = -1");
  check(
      5, [](proto::Command& c) { c.clear_command(); }, "no such command");
}

TEST(ProgramCodec, TooMuchOfAnything_IsRefusedBeforeParsing) {
  const std::string bytes = EncodeProgram(SampleProgram());
  const auto check = [&](int64_t ProgramLimits::*limit, const std::string& why) {
    WireLimits limits;
    limits.program.*limit = 1;
    EXPECT_THAT(DecodeProgram(bytes, limits), StatusIs(kBad, HasSubstr(why)));
  };
  check(&ProgramLimits::nodes, "Graph.nodes: more than 1");
  check(&ProgramLimits::slots, "Program.slots: more than 1");
  check(&ProgramLimits::devices, "Program.devices: more than 1");
  check(&ProgramLimits::commands, "Stream.commands: more than 1");
  check(&ProgramLimits::outputs, "Program.outputs: more than 1");
  check(&ProgramLimits::events, "'event_count' = 3");
  WireLimits limits;
  limits.messages = 20;
  EXPECT_THAT(DecodeProgram(bytes, limits), StatusIs(kBad, HasSubstr("more than 20 parts")));
}

}  // namespace
}  // namespace weft
