// What a plan should compute, by the scalar oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/scheduler/execution_plan.h"
#include "tests/support/host_graph.h"

namespace weft {

// Two evaluations of each step: the caller's graph, in which the nodes that the plan resolves are
// replaced by their plain forms, and the scheduled graph. Devices must agree with the second bit
// for bit; so must the first where nothing was fused, since a fused op may round once less.
class PlanOracle {
 public:
  // Both arguments outlive it.
  PlanOracle(const PlanContext& context, const ExecutionPlan& plan);

  // The leafs of the caller's graph, to be filled: caches before the first step only.
  HostGraph& leafs() { return leafs_; }
  absl::Status Step();
  // Of the last step, packed, in the order of the caller's graph.
  const std::vector<std::vector<uint8_t>>& outputs() const { return outputs_; }
  // The value of an executed node; nothing if it was fused away.
  std::optional<std::vector<uint8_t>> Value(NodeId id);
  // Empty if the two evaluations agree: exactly, or where nodes were fused to a few roundings
  // (unless the graph chooses by comparing, when any rounding may change everything).
  std::string Disagreement();

 private:
  void Resolve();
  // Fills leafs of `graph`, whose node i comes from node origin[i] of the caller's; caches only if
  // this is the first step.
  void Fill(const Graph& graph, const std::vector<NodeId>& origin, HostGraph& host);

  const PlanContext& context_;
  const ExecutionPlan& plan_;
  HostGraph leafs_;
  Graph resolved_;
  std::vector<NodeId> resolved_origin_;  // by node of resolved_, kNoNode: part of a plain form
  std::unique_ptr<HostGraph> resolved_host_;
  HostGraph scheduled_host_;
  bool first_ = true;
  std::vector<std::vector<uint8_t>> outputs_;
  std::vector<std::vector<uint8_t>> resolved_outputs_;
};

}  // namespace weft
