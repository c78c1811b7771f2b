// Random machines of fake devices, and random wishes for a plan over them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/random.h"
#include "coordinator/scheduler/plan_input.h"
#include "tests/support/fake_device.h"

namespace weft {

// GPUs, accelerators in the memory of processors and processors on up to four hosts, with their own
// ideas about ops, types, shapes, batches and whose memory they read. The last device is a
// processor that runs everything.
struct RandomFleet {
  std::vector<std::unique_ptr<FakeDevice>> owned;
  std::vector<Device*> devices;  // in order of priority
  // Not one of them, and none of them reads its memory.
  std::unique_ptr<FakeDevice> elsewhere;
};

struct FleetShape {
  int devices = 2;  // 1 and more
  // Least size of the largest allocation, where a device has one.
  int64_t buffer_bytes = int64_t{1} << 20;
  bool delays = true;
};
RandomFleet MakeRandomFleet(Random& random, const FleetShape& shape);

// Places for the leafs of `graph`, pins, batches, nodes to observe and options. A bound leaf lies
// on any device, now and then a weight elsewhere; a cache on one that runs its stores. `rules`:
// some rules are switched off as well.
PlanInput MakeRandomInput(Random& random, const Graph& graph, const RandomFleet& fleet, bool rules);

// The bytes of the largest tensor, and of all inputs together.
int64_t LargestTensor(const Graph& graph);
int64_t InputSum(const Graph& graph);

}  // namespace weft
