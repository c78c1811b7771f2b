// The simplest compiler of programs: nothing is reused, and every stream waits for whatever it
// reads from another one. For tests of what runs programs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/device/device.h"
#include "common/graph/graph.h"
#include "common/program/program.h"
#include "common/program/program_host.h"

namespace weft {

// The devices that a graph is compiled for, and how.
struct MachineForTest {
  std::vector<ProgramDevice> devices;
  // Steps may overlap (Program::copies): what devices read of each other lies in crossing slots,
  // inputs and page tables on each device that reads them.
  bool overlap = false;
  // A weight that only products by expert read, with the same ids, is copied by experts.
  bool copy_experts = false;
  // What is copied between memories, but weights, becomes messages of the process to itself: it is
  // process 0.
  bool edges = false;
  // Collectives run where their node does.
  std::vector<ProgramCommunicator> communicators;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  // Collectives go on beside what follows, until their result is read or the stream ends.
  bool detached = false;
};
// So many devices, each with memory of its own that no other reaches.
MachineForTest SeparateMachine(int32_t device_count);
// "host", "accel", which computes in the host's memory, and "gpu", which also reaches that.
MachineForTest SharingMachine();

// The node's device, where it may choose: views are where their root is, ops that write their
// source where they reach it, leafs where there is memory.
int32_t DeviceForTest(const Graph& graph, const std::vector<int32_t>& devices,
                      const MachineForTest& machine, NodeId id);

// Compiles `graph`. devices[i] runs (or holds, for a leaf) node i, as DeviceForTest says. A node
// reads tensors in memories of its device, or it is a `copy` of a contiguous tensor in another one.
// Output nodes become program outputs.
Program CompileForTest(const Graph& graph, const std::vector<int32_t>& devices,
                       const MachineForTest& machine);
Program CompileForTest(const Graph& graph, const std::vector<int32_t>& devices,
                       int32_t device_count);

// The graph with a `copy` wherever a node reads a tensor that its device cannot reach, and the
// device of each of its nodes. devices[i] is the device of node i of `graph`; `node_of` maps its
// nodes to the result's.
struct PlacedGraph {
  Graph graph;
  std::vector<int32_t> devices;
  std::vector<NodeId> node_of;
};
PlacedGraph InsertCopies(const Graph& graph, const std::vector<int32_t>& devices,
                         const MachineForTest& machine);
// For separate devices.
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
