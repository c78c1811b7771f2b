// Hostile programs that send and receive.
#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/hostile_program.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// x doubled on device 0 and sent as edge 0; received on device 1 as edge 0, and 1 added there. A
// weight is copied from device 0 to device 1.
Program Messages() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 2, 1, 1}, "x");
  const NodeId doubled = builder.Name(builder.Scale(x, 2), "doubled");
  const NodeId there = builder.Name(builder.Copy(doubled, DType::kF32), "there");
  builder.MarkOutput(builder.Name(builder.Scale(there, 1, 1), "plus"));
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {8, 2, 1, 1}, "w");
  const NodeId staged = builder.Name(builder.Copy(w, DType::kF32), "staged");
  builder.MarkOutput(builder.Name(builder.Scale(staged, 3), "tripled"));
  MachineForTest machine = SeparateMachine(2);
  machine.edges = true;
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 1, 1, 0, 1, 1}, machine);
}

SendCommand& TheSend(Program& program) { return First<SendCommand>(program, 0); }
ReceiveCommand& TheReceive(Program& program) { return First<ReceiveCommand>(program, 1); }

void SendNode(Program& program, std::string_view name) {
  TheSend(program).node = Named(program, name);
  TheSend(program).source = PlaceOf(program, name);
}

constexpr HostileCase kSends[] = {
    {"no node", [](Program& p) { TheSend(p).node = NodeId{99}; }, "no node 99"},
    {"negative node", [](Program& p) { TheSend(p).node = kNoNode; }, "no node -1"},
    {"negative edge", [](Program& p) { TheSend(p).edge = -1; }, "no edge -1"},
    {"edge beyond the limit", [](Program& p) { TheSend(p).edge = 1 << 14; }, "no edge 16384"},
    {"another edge", [](Program& p) { TheSend(p).edge = 5; }, nullptr},
    {"negative peer", [](Program& p) { TheSend(p).peer = -1; }, "no process -1"},
    {"peer beyond the limit", [](Program& p) { TheSend(p).peer = 4096; }, "no process 4096"},
    {"another peer", [](Program& p) { TheSend(p).peer = 4095; }, nullptr},
    {"place of another", [](Program& p) { TheSend(p).source = PlaceOf(p, "x"); },
     "(scale 'doubled'): its place or size is another"},
    {"place outside",
     [](Program& p) {
       TheSend(p).source = {99, 0};
     },
     "(scale 'doubled'): its place or size is another"},
    {"size", [](Program& p) { TheSend(p).bytes += 1; },
     "(scale 'doubled'): its place or size is another"},
    {"negative size", [](Program& p) { TheSend(p).bytes = -1; },
     "(scale 'doubled'): its place or size is another"},
    {"edge twice", [](Program& p) { Commands(p, 0).emplace_back(SendCommand(TheSend(p))); },
     "edge 0 is used twice"},
    {"node twice",
     [](Program& p) {
       SendCommand again = TheSend(p);
       again.edge = 1;
       Commands(p, 0).emplace_back(again);
     },
     nullptr},
    {"an input", [](Program& p) { SendNode(p, "x"); }, nullptr},
    {"a weight", [](Program& p) { SendNode(p, "w"); }, "(leaf 'w') is a weight"},
    {"before it is computed",
     [](Program& p) { std::swap(Commands(p, 0).front(), Commands(p, 0).back()); },
     "is not certain to be written"},
    {"in memory of another device", [](Program& p) { SendNode(p, "plus"); },
     "lies in memory of device 1, which device 0 cannot reach"},
    {"none", [](Program& p) { Drop<SendCommand>(p, 0); }, nullptr},
    {"without memory",
     [](Program& p) {
       SendNode(p, "w");
       PlaceOf(p, "w") = TheSend(p).source = {-1, 0};
     },
     "has no memory"},
};

TEST(VerifyEdges, HostileSends_AreRefused) { CheckHostile(Messages, kSends); }

constexpr HostileCase kReceives[] = {
    {"no node", [](Program& p) { TheReceive(p).node = NodeId{99}; }, "no node 99"},
    {"negative edge", [](Program& p) { TheReceive(p).edge = -1; }, "no edge -1"},
    {"edge beyond the limit", [](Program& p) { TheReceive(p).edge = 1 << 14; }, "no edge 16384"},
    {"negative peer", [](Program& p) { TheReceive(p).peer = -1; }, "no process -1"},
    {"peer beyond the limit", [](Program& p) { TheReceive(p).peer = 1 << 30; }, "no process"},
    {"node of another op", [](Program& p) { TheReceive(p).node = Named(p, "x"); },
     "(leaf 'x') is not received"},
    {"place of another", [](Program& p) { TheReceive(p).destination = PlaceOf(p, "plus"); },
     "(receive 'there'): its place or size is another"},
    {"size", [](Program& p) { TheReceive(p).bytes = 0; },
     "(receive 'there'): its place or size is another"},
    {"twice", [](Program& p) { Commands(p, 1).emplace_back(ReceiveCommand(TheReceive(p))); },
     "is listed twice"},
    {"never", [](Program& p) { Drop<ReceiveCommand>(p, 1); }, "is not certain to be written"},
    {"after its reader",
     [](Program& p) {
       Commands(p, 1).emplace_back(ReceiveCommand(TheReceive(p)));
       std::erase_if(Commands(p, 1), [&p](const Command& c) {
         return std::holds_alternative<ReceiveCommand>(c) && &c != &Commands(p, 1).back();
       });
     },
     "is not certain to be written"},
    {"as a computation",
     [](Program& p) {
       Commands(p, 1).insert(Commands(p, 1).begin(), ComputeCommand{{Named(p, "there")}});
       Drop<ReceiveCommand>(p, 1);
     },
     "(receive 'there') is computed by no device"},
    {"as a copy",
     [](Program& p) {
       const CopyCommand copy{Named(p, "there"), PlaceOf(p, "doubled"), PlaceOf(p, "there"), 64};
       Commands(p, 1).insert(Commands(p, 1).begin(), copy);
       Drop<ReceiveCommand>(p, 1);
     },
     "(receive 'there') is not a copy"},
    {"by another stream",
     [](Program& p) {
       Commands(p, 0).emplace_back(ReceiveCommand(TheReceive(p)));
       Drop<ReceiveCommand>(p, 1);
     },
     "is not certain to be written"},
    {"other extents", [](Program& p) { p.graph.mutable_node(Named(p, "there")).layout.ne[0] = 4; },
     "layout is"},
    {"attributes of another op",
     [](Program& p) { p.graph.mutable_node(Named(p, "there")).attributes = NoAttributes{}; },
     "attributes of another op"},
    {"a source",
     [](Program& p) { p.graph.mutable_node(Named(p, "there")).sources = {Named(p, "x")}; },
     "1 sources, want 0 to 0"},
};

TEST(VerifyEdges, HostileReceives_AreRefused) { CheckHostile(Messages, kReceives); }

TEST(VerifyEdges, TooManyBytes_AreRefused) {
  const Program program = Messages();
  ProgramLimits limits;
  limits.step_edge_bytes = 64;
  EXPECT_OK(VerifyProgram(program, limits));
  limits.step_edge_bytes = 63;
  EXPECT_THAT(VerifyProgram(program, limits),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the edges carry too much")));
}

TEST(VerifyEdges, PartOfAWeight_IsNotSent) {
  GraphBuilder builder;
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {4, 3, 8, 1}, "w");
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 2, 1}, "x");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {2, 2, 1, 1}, "ids");
  const NodeId experts = builder.Name(builder.Copy(w, DType::kF32), "experts");
  builder.MarkOutput(builder.MulMatId(experts, x, ids));
  MachineForTest machine = SeparateMachine(2);
  machine.copy_experts = true;
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 1, 1, 1, 1}, machine);
  ASSERT_OK(VerifyProgram(program));
  Commands(program, 1)
      .emplace_back(SendCommand{experts, PlaceOf(program, "experts"), 4 * 3 * 8 * 4, 0, 0});
  EXPECT_THAT(VerifyProgram(program), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("is sent, but copied in part")));
}

}  // namespace
}  // namespace weft
