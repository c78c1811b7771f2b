// Each field of a program, as an enemy would set it.
#include <limits>

#include "common/base/check.h"
#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/hostile_program.h"

namespace weft {
namespace {

// Node ids of Base().
constexpr NodeId kInputNode{0}, kWeightNode{1}, kProductNode{2}, kCacheNode{3}, kStoreNode{5},
    kReplicaNode{6}, kViewNode{7}, kResultNode{8};

// Device 0: a product, and rows stored into a cache. Device 1: a replica of the product, and the
// result.
Program Base() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 4, 1, 1}, "x");
  const NodeId w = builder.Leaf(LeafKind::kWeight, 5, DType::kF32, {8, 16, 1, 1}, "w");
  const NodeId y = builder.Name(builder.MulMat(w, x), "product");
  const NodeId cache = builder.Leaf(LeafKind::kCache, 2, DType::kF32, {16, 16, 1, 1}, "cache");
  const NodeId slots = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {4, 1, 1, 1}, "slots");
  builder.Name(builder.Make(Op::kSetRows, {}, {cache, y, slots}), "store");
  const NodeId replica = builder.Name(builder.Copy(y, DType::kF32), "replica");
  const NodeId view = builder.View(replica, {16, 2, 1, 1}, {4, 64, 128, 128}, 128);
  builder.MarkOutput(builder.Name(builder.Scale(view, 2), "result"));
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0, 0, 0, 1, 1, 1}, 2);
}
// Its slots: arenas 0 and 1, input 0, weight 5, cache 2, input 1.
constexpr int kArena0 = 0, kArena1 = 1, kInput0 = 2, kWeight5 = 3, kCache2 = 4;
// Its streams: [compute 2 and 5, record 0] and [wait 0, copy 6, compute 8].

SlotPlace& PlaceOf(Program& program, NodeId id) {
  return program.places[static_cast<size_t>(Index(id))];
}

constexpr HostileCase kTables[] = {
    {"graph", [](Program& p) { p.graph.mutable_node(kResultNode).op = static_cast<Op>(77); },
     "unknown op"},
    {"missing place", [](Program& p) { p.places.pop_back(); }, "8 places for 9 nodes"},
    {"events", [](Program& p) { p.event_count = -1; }, "-1 events"},
    {"many events", [](Program& p) { p.event_count = std::numeric_limits<int32_t>::max(); },
     "events, at most"},
    {"many slots", [](Program& p) { p.slots.resize(1 << 18); }, "slots, at most"},
    {"many devices", [](Program& p) { p.devices.resize(65); }, "65 devices, at most 64"},
    {"many streams", [](Program& p) { p.streams.resize(65); }, "65 streams, at most 64"},
    {"many outputs", [](Program& p) { p.outputs.resize(2000); }, "2000 outputs"},
    {"many commands", [](Program& p) { Commands(p, 0).resize(1 << 18, RecordCommand{0}); },
     "commands, at most"},
    {"long name", [](Program& p) { p.graph.mutable_node(kInputNode).name.assign(1000, 'x'); },
     "1000 bytes in a node's name"},
    {"long device name", [](Program& p) { p.devices[0].name.assign(1000, 'x'); },
     "1000 bytes in a device's name"},
    {"stream without device", [](Program& p) { p.streams[1].device = 2; }, "stream 1: no device 2"},
    {"negative device", [](Program& p) { p.streams[1].device = -1; }, "stream 1: no device -1"},
    {"two streams of a device", [](Program& p) { p.streams[1].device = 0; },
     "stream 1: device 0 has another one"},
    {"output of no node", [](Program& p) { p.outputs[0].node = NodeId{9}; }, "output 0: no node 9"},
    {"output of kNoNode", [](Program& p) { p.outputs[0].node = kNoNode; }, "output 0: no node -1"},
};

TEST(VerifyProgram, HostileTables_AreRefused) { CheckHostile(Base, kTables); }

constexpr HostileCase kSlots[] = {
    {"unknown kind", [](Program& p) { p.slots[kInput0].kind = static_cast<SlotKind>(9); },
     "slot 2: unknown kind"},
    {"device", [](Program& p) { p.slots[kCache2].device = 2; }, "slot 4: no device 2"},
    {"negative device", [](Program& p) { p.slots[kCache2].device = -1; }, "slot 4: no device -1"},
    {"negative id", [](Program& p) { p.slots[kWeight5].id = -1; }, "slot 3: id -1"},
    {"negative size", [](Program& p) { p.slots[kArena0].bytes = -1; }, "slot 0: -1 bytes"},
    {"huge", [](Program& p) { p.slots[kArena0].bytes = int64_t{1} << 50; }, "at most"},
    {"huge inputs",
     [](Program& p) {
       p.slots.push_back({SlotKind::kInput, 2, 0, int64_t{1} << 41});
       p.slots.push_back({SlotKind::kInput, 3, 0, int64_t{1} << 41});
     },
     "the inputs are too large"},
    {"huge table",
     [](Program& p) {
       p.slots.push_back({SlotKind::kPageTable, 0, 0, int64_t{1} << 40});
     },
     "bytes, at most"},
    {"weight twice", [](Program& p) { p.slots.push_back(p.slots[kWeight5]); },
     "slot 6: id 5 is used twice"},
    {"table twice",
     [](Program& p) {
       p.slots.resize(8, Slot{SlotKind::kPageTable, 1, 0, 64});
     },
     "slot 7: id 1 is used twice"},
    {"arena of another device", [](Program& p) { p.slots[kArena1].id = 0; },
     "slot 1: arena 0 on device 1"},
    {"gap in inputs", [](Program& p) { p.slots[kInput0].id = 7; }, "input ids have gaps"},
    {"no stream for a cache",
     [](Program& p) {
       p.devices.push_back({"idle", {2}});
       p.slots.push_back({SlotKind::kCache, 9, 2, 64});
     },
     "slot 6: device 2 has no stream"},
};

TEST(VerifyProgram, HostileSlots_AreRefused) { CheckHostile(Base, kSlots); }

constexpr HostileCase kPlaces[] = {
    {"no slot", [](Program& p) { PlaceOf(p, kProductNode).slot = 99; },
     "node 2 (mul_mat 'product'): no slot 99"},
    {"negative slot", [](Program& p) { PlaceOf(p, kProductNode).slot = -2; }, "no slot -2"},
    {"executed without memory",
     [](Program& p) {
       PlaceOf(p, kProductNode) = {-1, 0};
     },
     "node 2 (mul_mat 'product'): has no memory"},
    {"offset without a slot",
     [](Program& p) {
       PlaceOf(p, kWeightNode) = {-1, 64};
     },
     "an offset without a slot"},
    {"source without memory",
     [](Program& p) {
       PlaceOf(p, kWeightNode) = {-1, 0};
     },
     "source 1 has no memory"},
    {"misaligned", [](Program& p) { PlaceOf(p, kProductNode).offset = 4; }, "leaves slot"},
    {"misaligned inside",
     [](Program& p) {
       p.slots[kArena0].bytes += 64;
       PlaceOf(p, kProductNode).offset = 4;
     },
     "misaligned offset 4"},
    {"negative offset", [](Program& p) { PlaceOf(p, kProductNode).offset = -64; }, "leaves slot"},
    {"overflowing offset",
     [](Program& p) { PlaceOf(p, kProductNode).offset = std::numeric_limits<int64_t>::max() - 63; },
     "leaves slot"},
    {"slot too small", [](Program& p) { p.slots[kArena1].bytes -= 64; }, "leaves slot"},
    {"weight too small", [](Program& p) { p.slots[kWeight5].bytes = 16; }, "leaves slot"},
    {"input of another size", [](Program& p) { p.slots[kInput0].bytes += 64; },
     "an input of 128 bytes in a slot of 192"},
    {"leaf in another's slot", [](Program& p) { p.slots[kWeight5].id = 6; },
     "at the start of the slot of its kind and id 5"},
    {"leaf in an arena",
     [](Program& p) {
       p.slots[kArena0].bytes = 4096;
       PlaceOf(p, kWeightNode) = {kArena0, 1024};
     },
     "at the start of the slot"},
    {"result in a weight",
     [](Program& p) {
       PlaceOf(p, kProductNode) = {kWeight5, 0};
     },
     "a result lies outside the arenas"},
    {"result in a cache",
     [](Program& p) {
       PlaceOf(p, kProductNode) = {kCache2, 0};
     },
     "a result lies outside the arenas"},
    {"view elsewhere", [](Program& p) { PlaceOf(p, kViewNode).offset = 0; },
     "node 7 (view ''): is not where its root is"},
    {"view without memory",
     [](Program& p) {
       PlaceOf(p, kViewNode) = {-1, 0};
     },
     "is not where its root is"},
    {"store elsewhere",
     [](Program& p) {
       PlaceOf(p, kStoreNode) = {kArena0, 0};
     },
     "leaves slot"},
    {"output without memory",
     [](Program& p) {
       PlaceOf(p, kWeightNode) = {-1, 0};
       p.outputs[0].node = kWeightNode;
     },
     "output 0, node 1 (leaf 'w'): has no memory"},
};

TEST(VerifyProgram, HostilePlaces_AreRefused) { CheckHostile(Base, kPlaces); }

constexpr HostileCase kCommands[] = {
    {"node out of range",
     [](Program& p) { First<ComputeCommand>(p, 1).nodes.push_back(NodeId{99}); },
     "stream 1, command 2: no node 99"},
    {"kNoNode", [](Program& p) { First<ComputeCommand>(p, 1).nodes.push_back(kNoNode); },
     "stream 1, command 2: no node -1"},
    {"node twice", [](Program& p) { First<ComputeCommand>(p, 1).nodes.push_back(kResultNode); },
     "node 8 (scale 'result') is listed twice"},
    {"node on two devices",
     [](Program& p) { First<ComputeCommand>(p, 1).nodes.push_back(kProductNode); },
     "node 2 (mul_mat 'product')"},
    {"node nowhere", [](Program& p) { First<ComputeCommand>(p, 1).nodes.clear(); },
     "node 8 (scale 'result'): no command runs it"},
    {"node on the wrong device",
     [](Program& p) {
       First<ComputeCommand>(p, 1).nodes.clear();
       Commands(p, 0).push_back(WaitCommand{1});
       Commands(p, 0).push_back(ComputeCommand{{kResultNode}});
       Commands(p, 1).push_back(RecordCommand{1});
       p.event_count = 2;
     },
     "node 8 (scale 'result'): source 7 lies in memory of device 1, which device 0 cannot reach"},
    {"missing wait", [](Program& p) { Drop<WaitCommand>(p, 1); },
     "stream 1, command 0: node 6 (copy 'replica'): source 2 is not certain to be written"},
    {"missing record", [](Program& p) { Drop<RecordCommand>(p, 0); },
     "stream 1, command 0: waits for event 0, which is recorded never"},
    {"record before the work",
     [](Program& p) {
       Drop<RecordCommand>(p, 0);
       Commands(p, 0).insert(Commands(p, 0).begin(), RecordCommand{0});
     },
     "source 2 is not certain to be written"},
    {"missing copy", [](Program& p) { Drop<CopyCommand>(p, 1); },
     "node 8 (scale 'result'): source 7 is not certain to be written"},
    {"recorded twice", [](Program& p) { Commands(p, 0).push_back(RecordCommand{0}); },
     "event 0 is recorded twice"},
    {"unknown event", [](Program& p) { First<RecordCommand>(p, 0).event = 1; }, "no event 1"},
    {"negative event", [](Program& p) { First<WaitCommand>(p, 1).event = -1; }, "no event -1"},
    {"cycle",
     [](Program& p) {
       p.event_count = 2;
       Commands(p, 0).insert(Commands(p, 0).begin(), WaitCommand{1});
       Commands(p, 1).push_back(RecordCommand{1});
     },
     "waits for event"},
    {"wait for itself",
     [](Program& p) {
       p.event_count = 2;
       Commands(p, 1).push_back(WaitCommand{1});
       Commands(p, 1).push_back(RecordCommand{1});
     },
     "stream 1, command 3: waits for event 1"},
    {"input of another device without an event",
     [](Program& p) {
       p.graph.mutable_node(kReplicaNode).sources = {kProductNode};
       p.slots[kInput0].device = 1;
       p.devices[0].memories = {0, 1};
     },
     "source 0 is not certain to be written by stream 1"},
    {"written weight",
     [](Program& p) {
       p.graph.mutable_node(kCacheNode).attributes = LeafAttributes{LeafKind::kWeight, 2};
       p.slots[kCache2].kind = SlotKind::kWeight;
     },
     "node 5 (set_rows 'store'): writes a weight"},
    {"order inside a command",
     [](Program& p) {
       auto& nodes = First<ComputeCommand>(p, 0).nodes;
       std::reverse(nodes.begin(), nodes.end());
     },
     "source 2 is not certain to be written"},
};

TEST(VerifyProgram, HostileCommands_AreRefused) { CheckHostile(Base, kCommands); }

constexpr HostileCase kCopies[] = {
    {"no node", [](Program& p) { First<CopyCommand>(p, 1).node = NodeId{-5}; }, "no node -5"},
    {"node of another op", [](Program& p) { First<CopyCommand>(p, 1).node = kResultNode; },
     "node 8 (scale 'result') is not a copy"},
    {"conversion",
     [](Program& p) {
       p.graph.mutable_node(kReplicaNode).attributes = CopyAttributes{DType::kF16};
       p.graph.mutable_node(kReplicaNode).layout = *PackedLayout(DType::kF16, {16, 4, 1, 1});
       p.graph.mutable_node(kViewNode).op = Op::kReshape;
       p.graph.mutable_node(kViewNode).attributes = ReshapeAttributes{{16, 4, 1, 1}};
       p.graph.mutable_node(kViewNode).layout = *PackedLayout(DType::kF16, {16, 4, 1, 1});
       p.graph.mutable_node(kViewNode).view_offset = 0;
       p.places[7] = p.places[6];
       Node& result = p.graph.mutable_node(kResultNode);
       result.op = Op::kCopy;
       result.attributes = CopyAttributes{DType::kF32};
       result.layout = *PackedLayout(DType::kF32, {16, 4, 1, 1});
       p.slots[kArena1].bytes = 4096;
     },
     "node 6 (copy 'replica') does more than move bytes"},
    {"source place", [](Program& p) { First<CopyCommand>(p, 1).source.offset += 64; },
     "node 6 (copy 'replica'): its places or size are others"},
    {"source slot", [](Program& p) { First<CopyCommand>(p, 1).source.slot = 1000; },
     "its places or size are others"},
    {"destination", [](Program& p) { First<CopyCommand>(p, 1).destination.slot = kCache2; },
     "its places or size are others"},
    {"size", [](Program& p) { First<CopyCommand>(p, 1).bytes += 1; },
     "its places or size are others"},
    {"negative size", [](Program& p) { First<CopyCommand>(p, 1).bytes = -1; },
     "its places or size are others"},
    {"twice",
     [](Program& p) {
       const CopyCommand copy = First<CopyCommand>(p, 1);
       Commands(p, 1).emplace_back(copy);
     },
     "node 6 (copy 'replica') is listed twice"},
    {"by the wrong stream",
     [](Program& p) {
       const CopyCommand copy = First<CopyCommand>(p, 1);
       Drop<CopyCommand>(p, 1);
       Drop<WaitCommand>(p, 1);
       Commands(p, 0).emplace_back(copy);
       p.streams[1].commands.clear();
     },
     "node 6 (copy 'replica'): its result lies in memory of device 1, which device 0 cannot"},
};

TEST(VerifyProgram, HostileCopies_AreRefused) { CheckHostile(Base, kCopies); }

TEST(VerifyProgram, GoodVariants_Pass) {
  Program program = Base();
  // A view may be listed, once.
  First<ComputeCommand>(program, 1)
      .nodes.insert(First<ComputeCommand>(program, 1).nodes.begin(), kViewNode);
  // An event that nobody waits for, a wait for an event of one's own, an unused leaf and an empty
  // command.
  program.event_count = 2;
  Commands(program, 1).emplace_back(RecordCommand{1});
  Commands(program, 1).emplace_back(WaitCommand{1});
  Commands(program, 1).emplace_back(ComputeCommand{});
  EXPECT_OK(VerifyProgram(program));
  EXPECT_OK(VerifyProgram(Program{}));
}

}  // namespace
}  // namespace weft
