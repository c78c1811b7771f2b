// The graph as the devices run it: every node on its device, reading tensors that its device can
// read, with a `copy` node for each replica. The caller's graph is not touched.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

inline constexpr int32_t kNoEdge = -1;

struct ScheduledCopy {
  NodeId node = kNoNode;  // the `copy`
  ReplicaKind kind = ReplicaKind::kTensor;
  NodeId ids = kNoNode;  // of kExperts: which experts, where they were computed
  // In the part of one process of several: this is no copy but a `receive` of that edge from
  // process `peer`.
  int32_t edge = kNoEdge;
  int32_t peer = -1;
};

// In the part of one process of several: a tensor that process `peer` receives.
struct ScheduledSend {
  NodeId node = kNoNode;
  int32_t edge = kNoEdge;
  int32_t peer = -1;
};

struct ScheduledSplit {
  int32_t device = kNoDevice;
  std::vector<ScheduledCopy> copies;
  std::vector<NodeId> nodes;  // executed ones, in order
  std::vector<ScheduledSend> sends;
};

struct ScheduledGraph {
  Graph graph;
  // Per node. Of leafs: the device whose memory holds them. Of views: as what they show.
  std::vector<int32_t> devices;
  std::vector<int32_t> split_of;  // -1: leafs and views
  std::vector<NodeId> origin;     // node of the caller's graph; kNoNode: part of a plain form
  std::vector<ScheduledSplit> splits;
  std::vector<NodeId> outputs;  // in the order of the caller's graph
  int64_t fused = 0;            // plain nodes that became part of a fused one
  int64_t resolved = 0;         // fused nodes that became plain ones
};

absl::StatusOr<ScheduledGraph> BuildScheduledGraph(const PlanContext& context, const Plan& plan);

}  // namespace weft
