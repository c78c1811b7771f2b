// Small graphs over null devices, planned, and their plans in a notation that is short enough to
// compare.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/device/null_device.h"
#include "common/graph/graph_builder.h"
#include "coordinator/scheduler/execution_plan.h"

namespace weft {

struct RigDevice {
  NullDeviceOptions options;
  std::string memory_of;  // name of the device in whose memory it computes; empty: its own
};
RigDevice Gpu(std::string name, std::string host = "local");
RigDevice Cpu(std::string name, std::string host = "local");
RigDevice Accelerator(std::string name, std::string memory_of, std::string host = "local");

// For NullDeviceOptions::supports: everything but these.
std::function<Support(const Graph&, NodeId)> RefuseOps(std::vector<Op> ops);

class PlanRig {
 public:
  // In order of priority.
  explicit PlanRig(const std::vector<RigDevice>& devices);

  // Leafs of the graph that `g` makes. Those with a device lie in its memory.
  NodeId Weight(std::string_view name, const Extents& ne, int32_t device,
                DType dtype = DType::kF32);
  NodeId Cache(std::string_view name, const Extents& ne, int32_t device);
  NodeId Input(std::string_view name, const Extents& ne, DType dtype = DType::kF32);
  NodeId Table(std::string_view name, const Extents& ne);
  // A weight without a place.
  NodeId Free(std::string_view name, const Extents& ne);
  NodeId WeightIn(std::string_view name, const Extents& ne, const BufferType& type);
  NodeId Named(NodeId id, std::string_view name) { return g.Name(id, name); }

  // Places and cuts; keeps nothing of an earlier plan, and `g` goes on afterwards.
  absl::Status Plan(const PipelineOptions& options = {});

  Device& device(int32_t d) { return *input.devices[d]; }
  const PlanContext& context() const { return *context_; }
  const ExecutionPlan& result() const { return result_; }
  // Device and cause: "gpu 1.wgt0".
  std::string At(NodeId id) const;
  // "gpu [input x]: n0 n1; cpu [tensor n1]: n2", nodes by name.
  std::string Splits() const;
  // The replicas with their bytes: "tensor n1 -> cpu 256".
  std::string Copies() const;

  GraphBuilder g;
  PlanInput input;  // devices are set; graph and leafs are set by Plan

 private:
  NodeId Bound(LeafKind kind, std::string_view name, const Extents& ne, DType dtype,
               const LeafPlace& place);
  std::string NameOf(NodeId id) const;

  std::vector<std::unique_ptr<NullDevice>> owned_;
  std::vector<LeafPlace> places_;  // by node, as far as leafs were made
  int32_t next_id_[4] = {0, 0, 0, 0};
  Graph graph_;
  std::unique_ptr<PlanContext> context_;
  ExecutionPlan result_;
};

}  // namespace weft
