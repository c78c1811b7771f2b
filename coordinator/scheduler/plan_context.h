// A PlanInput with what the passes keep asking: answers of devices, asked once, and facts about the
// graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collectives/schedule.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// How a device can run a node.
enum class SupportKind : uint8_t {
  kNo,
  kYes,
  kPlain,  // not as the fused op that it is, but by its plain form (common/graph/fusion)
};

// The tensor whose value a view shows: follows views to the leaf or executed node.
NodeId BaseOf(const Graph& graph, NodeId id);

// Not thread-safe: answers are remembered. `input` outlives it.
class PlanContext {
 public:
  // Errors: INVALID_ARGUMENT for no devices, a last one that is not a CPU, tables of the wrong
  // size, pins and observed nodes that do not exist or do not execute.
  static absl::StatusOr<PlanContext> Create(const PlanInput& input);

  const PlanInput& input() const { return *input_; }
  const Graph& graph() const { return *input_->graph; }
  int32_t device_count() const { return static_cast<int32_t>(input_->devices.size()); }
  int32_t last_device() const { return device_count() - 1; }
  Device& device(int32_t d) const { return *input_->devices[d]; }
  bool Enabled(Rule rule) const { return !input_->options.disabled.Has(rule); }

  // --- Devices ---
  // A CPU or what shares its memory: such nodes do not spread before all others have.
  bool IsHostSide(int32_t d) const { return host_side_[d]; }
  bool SameHost(int32_t a, int32_t b) const { return host_[a] == host_[b]; }
  int32_t HostIndex(int32_t d) const { return host_[d]; }
  // Equal for devices of one machine, whose hosts may differ. Only ranks ask.
  int32_t MachineIndex(int32_t d) const { return machine_[d]; }
  // The position of the device that owns the memory where d's results lie.
  int32_t MemoryOf(int32_t d) const { return memory_[d]; }
  bool InBatch(int32_t d) const { return in_batch_[d]; }

  // --- Questions to devices, answered from memory the second time ---
  SupportKind Support(int32_t d, NodeId id) const;
  bool Supports(int32_t d, NodeId id) const { return Support(d, id) != SupportKind::kNo; }
  // Why not; OK if it can.
  absl::Status Refusal(int32_t d, NodeId id) const;
  bool ReadsType(int32_t d, const BufferType& type) const;
  bool Wants(int32_t d, NodeId id) const;
  // The listed device whose memory that is, else the first that reads it, else kNoDevice.
  int32_t OwnerOf(const BufferType& type) const;

  // --- Collectives ---
  // The communicator of a collective node.
  const PlanCommunicator& CommunicatorOf(NodeId id) const;
  // By rank of a communicator the machine, as CollectiveShape::hosts.
  std::vector<int32_t> HostsOf(int32_t communicator) const;
  LinkModels LinksOf(int32_t communicator) const;
  // Which algorithm a collective node takes, on all its ranks.
  CollectiveAlgorithm AlgorithmOf(const Node& node) const;

  // --- The graph ---
  const LeafPlace& Place(NodeId leaf) const;
  NodeId Base(NodeId id) const { return BaseOf(graph(), id); }
  bool IsWeight(NodeId id) const;      // or a view of one
  bool IsHostFilled(NodeId id) const;  // an input, a page table, or a view of such
  // The memory that `id` lies in under `plan`; null while that is open.
  const BufferType* MemoryType(const Plan& plan, NodeId id) const;
  // Can the kernels of d read `id` where it lies? False while that is open.
  bool Reads(const Plan& plan, int32_t d, NodeId id) const;
  // Supports; d also runs what later writes into the result; is on the machine of the node's
  // weights; and for an op that writes its source: d works in that memory, or the leaf follows it.
  bool MayRun(const Plan& plan, int32_t d, NodeId id) const;
  // The machine (HostIndex) that a node must be on because its weights are there, -1 for any. Of
  // the first weight of which a device of its machine runs the node; nodes that write into one
  // tensor have one machine together. Any where one of them is pinned, and where the tensor that
  // they write into has a place.
  int32_t WeightHost(NodeId id) const { return weight_hosts_[Index(id)]; }
  // Why not, of a device for which MayRun is false.
  std::string WhyNot(const Plan& plan, int32_t d, NodeId id) const;
  // What is copied so that another device can read `id`: a packed part of its tensor, or all of it.
  NodeId ReplicatedTensor(NodeId id) const;
  // For every weight leaf and device: the ids tensor if all its readers there are products by
  // expert with the same ids, so that a copy of the used experts will do; else kNoNode.
  NodeId ExpertIds(const Plan& plan, int32_t d, NodeId weight) const;

 private:
  explicit PlanContext(const PlanInput& input) : input_(&input) {}
  absl::Status Check() const;
  absl::Status CheckCommunicators() const;
  absl::Status CheckCollectives() const;
  void Describe();
  void FindOwners();
  void FindWeightHosts();
  int32_t WeightHostOf(absl::Span<const NodeId> nodes) const;
  SupportKind AskSupport(int32_t d, NodeId id) const;
  // The first op that writes into the result of `id` and that d cannot run, or kNoNode.
  NodeId RefusedWriter(int32_t d, NodeId id) const;

  const PlanInput* input_;
  std::vector<bool> host_side_;
  std::vector<bool> in_batch_;
  std::vector<int32_t> host_;
  std::vector<int32_t> machine_;
  std::vector<int32_t> memory_;
  std::vector<int32_t> weight_hosts_;                         // per node
  std::vector<std::vector<NodeId>> weight_users_;             // per node; empty but for weights
  absl::flat_hash_map<NodeId, std::vector<NodeId>> writers_;  // by the computed tensor they change
  absl::flat_hash_map<const BufferType*, int32_t> owners_;
  mutable std::vector<uint8_t> support_;  // by device and node: 0 unknown, else 1 + SupportKind
  mutable absl::flat_hash_map<std::pair<int32_t, const BufferType*>, bool> reads_;
  // By communicator, elements and wire type.
  mutable absl::flat_hash_map<std::tuple<int32_t, int64_t, DType>, CollectiveAlgorithm> algorithms_;
};

}  // namespace weft
