// Hostile programs that copy experts or show tensors.
#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/hostile_program.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// A weight of experts on device 0, copied for two products on device 1.
Program Experts() {
  GraphBuilder builder;
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {4, 3, 8, 1}, "w");
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 2, 1}, "x");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {2, 2, 1, 1}, "ids");
  const NodeId other = builder.Leaf(LeafKind::kInput, 2, DType::kI32, {2, 2, 1, 1}, "other");
  const NodeId experts = builder.Name(builder.Copy(w, DType::kF32), "experts");
  const NodeId replica = builder.Name(builder.Copy(ids, DType::kI32), "replica");
  const NodeId part = builder.Name(
      builder.View(builder.Reshape(replica, {4, 1, 1, 1}), {2, 2, 1, 1}, {4, 4, 8, 8}, 0), "part");
  const NodeId a = builder.Name(builder.MulMatId(experts, x, replica), "a");
  const NodeId b = builder.Name(builder.MulMatId(experts, x, part), "b");
  builder.MarkOutput(builder.Name(builder.Add(a, b), "sum"));
  builder.MarkOutput(builder.Name(builder.Copy(other, DType::kI32), "shown"));
  const Graph graph = *std::move(builder).Finish();
  std::vector<int32_t> devices(static_cast<size_t>(graph.size()), 1);
  devices[0] = 0;
  Program program = CompileForTest(graph, devices, 2);
  // Before the kernels, by experts instead of in full.
  Drop<CopyCommand>(program, 1);
  Commands(program, 1)
      .insert(Commands(program, 1).begin(),
              CopyExpertsCommand{experts, ids, PlaceOf(program, "w"), PlaceOf(program, "ids"),
                                 PlaceOf(program, "experts"), 4 * 3 * 8 * 4});
  return program;
}

CopyExpertsCommand& TheExperts(Program& program) { return First<CopyExpertsCommand>(program, 1); }

constexpr HostileCase kExperts[] = {
    {"no node", [](Program& p) { TheExperts(p).node = NodeId{99}; }, "no node 99"},
    {"no ids", [](Program& p) { TheExperts(p).ids = kNoNode; }, "no node -1"},
    {"node of another op", [](Program& p) { TheExperts(p).node = Named(p, "sum"); },
     "(add 'sum') is not a copy"},
    {"source place", [](Program& p) { TheExperts(p).source.offset = 64; },
     "(copy 'experts'): its places or size are others"},
    {"destination", [](Program& p) { TheExperts(p).destination.slot = 99; },
     "(copy 'experts'): its places or size are others"},
    {"size", [](Program& p) { TheExperts(p).bytes -= 1; },
     "(copy 'experts'): its places or size are others"},
    {"place of the ids", [](Program& p) { TheExperts(p).ids_place.offset += 64; },
     "(leaf 'ids'): the place of the ids is another"},
    {"ids without memory",
     [](Program& p) {
       PlaceOf(p, "ids") = TheExperts(p).ids_place = {-1, 0};
       Drop<ComputeCommand>(p, 1);
     },
     "the place of the ids is another"},
    {"ids of another type",
     [](Program& p) {
       TheExperts(p).ids = Named(p, "x");
       TheExperts(p).ids_place = PlaceOf(p, "x");
     },
     "names no experts, it is not I32"},
    {"other ids",
     [](Program& p) {
       TheExperts(p).ids = Named(p, "other");
       TheExperts(p).ids_place = PlaceOf(p, "other");
     },
     "(copy 'experts') has only the experts of node 3, but node 8 (mul_mat_id 'a') reads it"},
    {"part of the ids",
     [](Program& p) {
       const NodeId part = Named(p, "part");
       TheExperts(p).ids = part;
       TheExperts(p).ids_place = PlaceOf(p, "part");
     },
     "has only the experts of node 7, but node 8 (mul_mat_id 'a') reads it"},
    {"another user",
     [](Program& p) {
       const NodeId shown = Named(p, "shown");
       p.graph.mutable_node(shown) = p.graph.node(Named(p, "experts"));
       p.graph.mutable_node(shown).sources = {Named(p, "experts")};
       p.slots[p.places[Index(shown)].slot].bytes += 4096;
     },
     "but node 11 (copy 'experts') reads it"},
    {"output", [](Program& p) { p.outputs.push_back({Named(p, "experts")}); },
     "is an output, but copied in part"},
    {"source is no weight",
     [](Program& p) {
       p.graph.mutable_node(NodeId{0}).attributes = LeafAttributes{LeafKind::kCache, 0};
       p.slots[PlaceOf(p, "w").slot].kind = SlotKind::kCache;
     },
     "is not a copy of a weight of experts"},
    {"the same memory", [](Program& p) { p.slots[PlaceOf(p, "w").slot].device = 1; },
     "lies in the same memory as its source"},
    {"twice", [](Program& p) { Commands(p, 1).emplace_back(CopyExpertsCommand(TheExperts(p))); },
     "is listed twice"},
    {"after its users",
     [](Program& p) {
       Commands(p, 1).emplace_back(CopyExpertsCommand(TheExperts(p)));
       Commands(p, 1).erase(Commands(p, 1).begin());
     },
     "is not certain to be written"},
    {"by another stream",
     [](Program& p) {
       Commands(p, 0).emplace_back(CopyExpertsCommand(TheExperts(p)));
       Commands(p, 1).erase(Commands(p, 1).begin());
     },
     "(mul_mat_id 'a'): source 4 is not certain to be written"},
    {"before its ids",
     [](Program& p) {
       TheExperts(p).ids = Named(p, "replica");
       TheExperts(p).ids_place = PlaceOf(p, "replica");
     },
     "(copy 'experts'): source 5 is not certain to be written"},
};

TEST(VerifyCommands, HostileExpertCopies_AreRefused) { CheckHostile(Experts, kExperts); }

Program Showing() {
  Program program = SharingProgram();
  Commands(program, 1).emplace_back(ObserveCommand{Named(program, "sum"), 1});
  return program;
}

constexpr HostileCase kObservations[] = {
    {"no node", [](Program& p) { First<ObserveCommand>(p, 1).node = NodeId{99}; }, "no node 99"},
    {"leaf", [](Program& p) { First<ObserveCommand>(p, 1).node = Named(p, "cache"); },
     "(leaf 'cache') is not computed"},
    {"before it is computed",
     [](Program& p) { std::swap(Commands(p, 1).front(), Commands(p, 1).back()); },
     "is not certain to be written"},
    {"of another stream without an event",
     [](Program& p) { First<ObserveCommand>(p, 1).node = Named(p, "plus"); },
     "source 6 lies in memory of device 2, which device 1 cannot reach"},
    {"twice", [](Program& p) { Commands(p, 1).push_back(Commands(p, 1).back()); }, nullptr},
    {"of another stream",
     [](Program& p) { First<ObserveCommand>(p, 1).node = Named(p, "doubled"); }, nullptr},
};

TEST(VerifyCommands, HostileObservations_AreRefused) { CheckHostile(Showing, kObservations); }

TEST(VerifyCommands, ObservedExperts_AreRefused) {
  Program program = Experts();
  Commands(program, 1).emplace_back(ObserveCommand{Named(program, "experts"), 0});
  EXPECT_THAT(VerifyProgram(program),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is copied in part")));
}

TEST(VerifyCommands, ObservedViewThatIsNotPacked_IsRefused) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 2, 1, 1}, "x");
  const NodeId turned = builder.Transpose(builder.Scale(x, 2));
  Program program = CompileForTest(*std::move(builder).Finish(), {0, 0, 0}, 1);
  ASSERT_OK(VerifyProgram(program));
  Commands(program, 0).emplace_back(ObserveCommand{turned, 0});
  EXPECT_THAT(VerifyProgram(program),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not packed")));
}

}  // namespace
}  // namespace weft
