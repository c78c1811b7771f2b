// Hostile programs over devices that share memory or overlap steps.
#include <algorithm>

#include "common/graph/graph_builder.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/hostile_program.h"

namespace weft {
namespace {

int32_t SlotOfKind(const Program& program, SlotKind kind) {
  for (size_t i = 0; i < program.slots.size(); ++i) {
    if (program.slots[i].kind == kind) return static_cast<int32_t>(i);
  }
  return -1;
}

constexpr HostileCase kDevices[] = {
    {"no memories", [](Program& p) { p.devices[2].memories.clear(); }, "device 2: no memories"},
    {"no such memory", [](Program& p) { p.devices[2].memories.push_back(3); },
     "device 2: no device 3"},
    {"negative", [](Program& p) { p.devices[2].memories.push_back(-1); }, "device 2: no device -1"},
    {"twice", [](Program& p) { p.devices[2].memories.push_back(0); }, "device 2: memory 0 twice"},
    {"memory of one that has none", [](Program& p) { p.devices[2].memories.push_back(1); },
     "device 2: device 1 has no memory of its own"},
    {"chain", [](Program& p) { p.devices[2].memories = {1}; },
     "device 2: device 1 has no memory of its own"},
    {"both share", [](Program& p) { p.devices[0].memories = {1}; },
     "device 0: device 1 has no memory of its own"},
    {"itself later", [](Program& p) { p.devices[1].memories.push_back(1); },
     "device 1: device 1 has no memory of its own"},
    {"copies", [](Program& p) { p.copies = 2; }, "2 copies, want 1 or 4"},
    {"no copies", [](Program& p) { p.copies = 0; }, "0 copies"},
    {"overlap in shared memory", [](Program& p) { p.copies = 4; },
     "device 1: steps cannot overlap where memory is shared"},
    {"arena of a device without memory",
     [](Program& p) {
       p.slots.push_back({SlotKind::kArena, 1, 1, 64});
     },
     "device 1 has no memory of its own"},
    {"cache of a device without memory",
     [](Program& p) { p.slots[SlotOfKind(p, SlotKind::kCache)].device = 1; },
     "device 1 has no memory of its own"},
    {"crossing slot of another device",
     [](Program& p) {
       p.slots.push_back({SlotKind::kCrossing, 0, 2, 64});
     },
     "crossing slot 0 on device 2"},
    {"input twice on a device",
     [](Program& p) { p.slots.push_back(p.slots[SlotOfKind(p, SlotKind::kInput)]); },
     "id 0 is used twice"},
    {"input of two sizes",
     [](Program& p) {
       Slot slot = p.slots[SlotOfKind(p, SlotKind::kInput)];
       slot.device = 2;
       slot.bytes += 64;
       p.slots.push_back(slot);
     },
     "input 0 of 128 bytes, elsewhere of 64"},
    {"memory that is not reached", [](Program& p) { p.devices[2].memories = {2}; },
     "source 3 lies in memory of device 0, which device 2 cannot reach"},
    // Good ones.
    {"input on two devices",
     [](Program& p) {
       Slot slot = p.slots[SlotOfKind(p, SlotKind::kInput)];
       slot.device = 2;
       p.slots.push_back(slot);
     },
     nullptr},
    {"several crossing slots, once",
     [](Program& p) {
       p.slots.resize(p.slots.size() + 2, Slot{SlotKind::kCrossing, 2, 2, 64});
     },
     nullptr},
    {"more memories", [](Program& p) { p.devices[0].memories.push_back(2); }, nullptr},
};

TEST(VerifySharing, HostileDevices_AreRefused) { CheckHostile(SharingProgram, kDevices); }

constexpr HostileCase kRaces[] = {
    {"cache before its pages are copied", [](Program& p) { Drop<WaitCommand>(p, 1); },
     "(set_rows 'store'): source 2 is not certain to be written by stream 0"},
    {"result over what another stream still reads",
     [](Program& p) { PlaceOf(p, "sum") = PlaceOf(p, "doubled"); }, "stream 2, command"},
    {"result in memory of a device that is not reached",
     [](Program& p) { PlaceOf(p, "sum") = PlaceOf(p, "half"); },
     "its result lies in memory of device 2, which device 1 cannot reach"},
    {"result over what another stream writes",
     [](Program& p) {
       p.slots[PlaceOf(p, "doubled").slot].bytes += 64;
       PlaceOf(p, "half") = PlaceOf(p, "sum");
       p.outputs.clear();
     },
     "may still write there"},
    {"cache while another stream stores",
     [](Program& p) {
       Node& half = p.graph.mutable_node(Named(p, "half"));
       half.sources = {Named(p, "cache")};
       half.layout = p.graph.layout(Named(p, "cache"));
       p.slots[PlaceOf(p, "half").slot].bytes += 4096;
     },
     "may still read there"},
    {"store that was not waited for",
     [](Program& p) {
       Node& half = p.graph.mutable_node(Named(p, "half"));
       half.sources = {Named(p, "store")};
       half.layout = p.graph.layout(Named(p, "store"));
       p.slots[PlaceOf(p, "half").slot].bytes += 4096;
     },
     "(scale 'half'): source 4 is not certain to be written"},
    {"output that another stream stores into",
     [](Program& p) { p.outputs.push_back({Named(p, "cache")}); },
     "output 2, node 2 (leaf 'cache'): stream 1, command"},
    // Good ones.
    {"results beside each other in one memory",
     [](Program& p) {
       p.slots[PlaceOf(p, "doubled").slot].bytes += 4096;
       PlaceOf(p, "half") = {PlaceOf(p, "doubled").slot, 2048};
     },
     nullptr},
    {"output of a store by another device",
     [](Program& p) { p.outputs.push_back({Named(p, "store")}); }, nullptr},
};

TEST(VerifySharing, Races_AreRefused) { CheckHostile(SharingProgram, kRaces); }

// Two devices store into halves of a cache at once, then one of them reads it all.
Program Halves() {
  GraphBuilder builder;
  const NodeId cache = builder.Leaf(LeafKind::kCache, 0, DType::kF32, {8, 8, 1, 1}, "cache");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 0, DType::kI32, {2, 1, 1, 1}, "ids");
  const NodeId rows = builder.Leaf(LeafKind::kInput, 1, DType::kF32, {8, 2, 1, 1}, "rows");
  const NodeId low = builder.View(cache, {8, 4, 1, 1}, {4, 32, 128, 128}, 0);
  const NodeId high = builder.View(cache, {8, 4, 1, 1}, {4, 32, 128, 128}, 128);
  builder.Name(builder.Make(Op::kSetRows, {}, {low, rows, ids}), "low");
  const NodeId stored = builder.Name(builder.Make(Op::kSetRows, {}, {high, rows, ids}), "high");
  builder.MarkOutput(builder.Name(builder.SumRows(stored), "sum"));
  Program program =
      CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0, 0, 0, 1, 1}, SharingMachine());
  // Device 1 needs to wait for the start of device 0 only.
  std::stable_partition(Commands(program, 0).begin(), Commands(program, 0).end(),
                        [](const Command& c) { return std::holds_alternative<RecordCommand>(c); });
  return program;
}

constexpr HostileCase kHalves[] = {
    {"overlapping halves",
     [](Program& p) {
       for (const char* name : {"low", "high"}) {
         Node& store = p.graph.mutable_node(Named(p, name));
         store.view_offset = 0;
         store.sources[0] = NodeId{3};
         PlaceOf(p, name).offset = 0;
       }
     },
     "(set_rows 'high'): source 3: stream 0, command 3 may still write it"},
    {"wait for the first store",
     [](Program& p) {
       p.event_count += 1;
       Commands(p, 0).emplace_back(RecordCommand{p.event_count - 1});
       Commands(p, 1).insert(Commands(p, 1).begin(), WaitCommand{p.event_count - 1});
       p.outputs.push_back({Named(p, "cache")});
     },
     "output 1, node 0 (leaf 'cache'): stream 1"},
};

TEST(VerifySharing, StoresOfTwoStreams_MustNotMeet) { CheckHostile(Halves, kHalves); }

// Device 0 doubles x, device 1 copies the double, and a cache of device 0 in part.
Program Overlapping() {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 2, 1, 1}, "x");
  const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {8, 2, 1, 1}, "w");
  const NodeId cache = builder.Leaf(LeafKind::kCache, 0, DType::kF32, {8, 2, 1, 1}, "cache");
  const NodeId doubled = builder.Name(builder.Add(builder.Scale(x, 2), cache), "doubled");
  const NodeId there = builder.Name(builder.Copy(doubled, DType::kF32), "there");
  const NodeId weight = builder.Name(builder.Copy(w, DType::kF32), "weight");
  builder.MarkOutput(builder.Name(builder.Add(there, weight), "sum"));
  MachineForTest machine = SeparateMachine(2);
  machine.overlap = true;
  return CompileForTest(*std::move(builder).Finish(), {0, 0, 0, 0, 0, 1, 1, 1}, machine);
}

void CopyInstead(Program& program, std::string_view source) {
  Node& node = program.graph.mutable_node(Named(program, "there"));
  node.sources = {Named(program, source)};
  First<CopyCommand>(program, 1).source = PlaceOf(program, source);
}

constexpr HostileCase kOverlaps[] = {
    {"copy from an arena",
     [](Program& p) {
       Slot& slot = p.slots[PlaceOf(p, "doubled").slot];
       ASSERT_EQ(slot.kind, SlotKind::kCrossing);
       slot.kind = SlotKind::kArena;
     },
     "lies in memory of device 0 outside crossing slots, and steps overlap"},
    {"copy from an input", [](Program& p) { CopyInstead(p, "x"); },
     "source 0 lies in memory of device 0 outside crossing slots"},
    {"copy from a cache", [](Program& p) { CopyInstead(p, "cache"); },
     "source 2 lies in memory of device 0 outside crossing slots"},
    {"result in an arena of another device",
     [](Program& p) {
       p.devices[1].memories.push_back(0);
       Slot& slot = p.slots[PlaceOf(p, "doubled").slot];
       p.slots.push_back({SlotKind::kArena, 0, 0, slot.bytes});
       PlaceOf(p, "sum") = {static_cast<int32_t>(p.slots.size()) - 1, 0};
     },
     "its result lies in memory of device 0 outside crossing slots"},
    // Good ones.
    {"one copy", [](Program& p) { p.copies = 1; }, nullptr},
    {"a weight read where it lies",
     [](Program& p) {
       p.devices[1].memories.push_back(0);
       p.graph.mutable_node(Named(p, "sum")).sources = {Named(p, "there"), Named(p, "w")};
     },
     nullptr},
    {"result in a crossing slot of another device",
     [](Program& p) {
       p.devices[1].memories.push_back(0);
       p.slots.push_back({SlotKind::kCrossing, 0, 0, 64});
       PlaceOf(p, "sum") = {static_cast<int32_t>(p.slots.size()) - 1, 0};
     },
     nullptr},
};

TEST(VerifySharing, HostileOverlaps_AreRefused) { CheckHostile(Overlapping, kOverlaps); }

}  // namespace
}  // namespace weft
