// The simplest compiler of programs: nothing is reused, and every stream waits for whatever it
// copies. For tests of what runs programs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/device/device.h"
#include "common/graph/graph.h"
#include "common/program/program.h"
#include "common/program/program_host.h"

namespace weft {

// Compiles `graph` for `device_count` devices. devices[i] runs (or holds, for a leaf) node i; views
// and ops that write their source are where their root is. A node reads sources of its own device,
// or it is a `copy` of a contiguous tensor of another one. Output nodes become program outputs.
Program CompileForTest(const Graph& graph, std::vector<int32_t> devices, int32_t device_count);

// The graph with a `copy` wherever a node reads a tensor of another device, and the device of each
// of its nodes. devices[i] is the device of node i of `graph`; `node_of` maps its nodes to the
// result's.
struct PlacedGraph {
  Graph graph;
  std::vector<int32_t> devices;
  std::vector<NodeId> node_of;
};
PlacedGraph InsertCopies(const Graph& graph, const std::vector<int32_t>& devices);

// Buffers for the weights and caches of a program, zero-filled, each with a margin before it so
// that offsets matter.
struct BoundSlots {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<SlotBinding> bindings;

  const SlotBinding& Find(SlotKind kind, int32_t id) const;
};
BoundSlots BindForTest(const Program& program, const std::vector<Device*>& devices);

}  // namespace weft
