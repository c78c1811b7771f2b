// What the scheduler plans: a graph, devices in order of priority, where bound memory lies, and the
// user's wishes. A plan is a pure function of this.
#pragma once

#include <cstdint>
#include <vector>

#include "common/collectives/algorithm_choice.h"
#include "common/device/device.h"
#include "common/graph/graph.h"
#include "common/tensor/dtype.h"
#include "coordinator/scheduler/rule.h"

namespace weft {

inline constexpr int32_t kNoDevice = -1;
inline constexpr int64_t kMaxPlanDevices = 65536;

// The memory of a leaf that exists before the plan. Null: the plan chooses a device for it.
struct LeafPlace {
  const BufferType* type = nullptr;
  BufferUsage usage = BufferUsage::kAny;
};

// The user wants this node on that device. Never overruled: a device that cannot run it is an
// error.
struct Pin {
  NodeId node = kNoNode;
  int32_t device = kNoDevice;
};

// Who performs collectives together: the position in the list of devices of each rank, each once.
// Which ranks are on one machine is Device::machine().
using PlanCommunicator = std::vector<int32_t>;

// Whether sums of a tensor split travel while their ranks compute something else: a large step is
// then computed in two halves. kAuto: as the links between ranks are
// (coordinator/engine/overlap.h); a plan takes it for kOff.
enum class OverlapPolicy : uint8_t { kAuto, kOn, kOff };

struct PlanOptions {
  bool op_offload = true;
  // From how many tokens on every GPU asks for nodes whose weight lies in host memory; 0: as each
  // device says.
  int64_t offload_batch = 0;
  // Most bytes of weights that one split copies to its device, a single larger weight excepted.
  int64_t staged_bytes_limit = int64_t{256} << 20;
  // Steps follow each other through the devices: tensors that cross get rotating copies.
  bool pipeline = false;
  // Of sums over the ranks of a group: as what they travel (F32, BF16 or Q8_0), and how.
  DType wire = DType::kF32;
  AllReducePolicy all_reduce = AllReducePolicy::kAuto;
  OverlapPolicy overlap = OverlapPolicy::kAuto;
  RuleSet disabled;
  // Executed nodes whose results an observer wants to see (spec B.9).
  std::vector<NodeId> observed;
};

struct PlanInput {
  const Graph* graph = nullptr;  // outlives the plan
  std::vector<Device*> devices;  // the order is the priority; the last is a CPU
  std::vector<LeafPlace> leafs;  // per node of the graph; only those of leafs count
  // Every collective of the graph is pinned to a rank's device.
  std::vector<Pin> pins;
  int64_t batch = 1;  // tokens of the step
  // The user's batch ranges by device position (spec B.14a); shorter or empty: what devices prefer.
  std::vector<BatchRange> batch_ranges;
  std::vector<PlanCommunicator> communicators;  // as attributes of collectives name them
  // By communicator, for the choice of algorithms; shorter or empty: the default.
  std::vector<LinkModels> communicator_links;
  PlanOptions options;
};

}  // namespace weft
