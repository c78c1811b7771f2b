// What `weft explain` says about a model on a list of devices, before it is put into words: where
// weights, caches and operations go and why, what is copied, what memory it takes. Plain data;
// nothing is loaded and no device does anything but answer static questions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/collectives/algorithm_choice.h"
#include "common/collectives/schedule.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "coordinator/engine/rank_links.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

struct ExplainOptions {
  PlacementOptions placement = {};
  std::vector<BatchRange> batch_ranges = {};  // as PlanInput
  PlanOptions plan = {};                      // pipelining is tried whatever it says, as runners do
  int64_t batch = 512;                        // tokens of the prefill step
  int64_t sequences = 1;                      // and tokens of the decode step
  int64_t context = 4096;
  std::vector<HostLink> links = {};  // known ones, for the choice of algorithms
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
  const Clock* clock = nullptr;  // null: passes are not timed
};

// Devices are positions in ExplainReport::devices, kNoDevice: none. Sizes are bytes.
struct ExplainDevice {
  std::string name;
  std::string kind;
  std::string host;
  std::string description;
  int64_t memory_bytes = 0;  // 0: unknown
  BatchRange batch;          // that it asks for
  bool mapped = false;       // reads weights where the file is mapped
  int64_t weights = 0;       // how many
  int64_t weight_bytes = 0;  // a tensor that several weights share counts once
  int64_t cache_bytes = 0;
  // The larger of prefill and decode, which share this memory.
  int64_t arena_bytes = 0;
  int64_t crossing_bytes = 0;  // all rotating copies
  int64_t workspace_bytes = 0;
  int64_t Sum() const {
    return weight_bytes + cache_bytes + arena_bytes + crossing_bytes + workspace_bytes;
  }
};

struct ExplainWeight {
  std::string name;
  std::string tensor;  // of the file, where another name has its bytes too; else empty
  std::string type;
  int32_t layer = -1;
  int64_t bytes = 0;
  int32_t device = kNoDevice;
  std::string reason;
  bool with_layer = true;  // on the device of its layer (the token embedding: the input layer's)
  // How the ranks of a group hold it, in words; then `device` is the first rank. Else empty.
  std::string split;
};

// Devices that compute each layer together (--split-mode tensor).
struct ExplainGroup {
  std::string name;
  std::vector<int32_t> ranks;  // devices
  std::vector<double> shares;  // by rank
  // What the choice of algorithms assumes of the connections between the ranks: outer between
  // machines, inner within one.
  LinkModels links;
  std::vector<int32_t> machines;  // by rank; equal numbers are one machine, counted from 0
};

// Sums or gathers that are alike: of one group, as one type, of one size.
struct ExplainCollective {
  std::string group;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  DType wire = DType::kF32;  // as what it travels
  int64_t elements = 0;      // of the vector
  int64_t count = 0;         // in a step
  // Of one: the longest chain of messages, and what all ranks send together.
  int64_t steps = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
  // Of an all_reduce what each algorithm that the flags allow would take.
  std::vector<AllReducePrediction> predictions;
};

// What a rank sends to others in the collectives of a step.
struct ExplainRankTraffic {
  int32_t device = kNoDevice;
  int64_t messages = 0;
  int64_t bytes = 0;
};

struct ExplainCache {
  int32_t layer = 0;
  bool is_value = false;
  int64_t bytes = 0;
  int32_t device = kNoDevice;
  std::string reason;
};

// An executed node.
struct ExplainNode {
  int32_t id = 0;  // its position in the graph
  Op op = Op::kLeaf;
  std::string name;   // of the node; empty for most
  std::string label;  // its name, else that of the weight or cache it works with, else "rope.3"
  int32_t layer = -1;
  int32_t device = kNoDevice;
  std::string cause;  // code, as CauseCode
  std::string why;    // in words
  int32_t split = 0;
  int64_t bytes = 0;   // of the result
  bool plain = false;  // the device runs the plain form of this fused op
};

// One node that a pass moved; `node` is a position in ExplainPhase::nodes.
struct ExplainChange {
  int32_t node = 0;
  int32_t from = kNoDevice;
  int32_t to = kNoDevice;
  std::string cause;
  std::string why;
};

struct ExplainPass {
  std::string name;
  std::vector<ExplainChange> changes;  // of executed nodes
  int64_t other_changes = 0;           // of leafs and views
  double seconds = 0;
};

// A tensor that a split copies to its device before it starts.
struct ExplainInput {
  ReplicaKind kind = ReplicaKind::kTensor;
  int32_t node = 0;  // position in the graph
  std::string label;
  int64_t bytes = 0;
  int32_t from = kNoDevice;
};

struct ExplainSplit {
  int32_t device = kNoDevice;
  int32_t begin = 0;  // positions in ExplainPhase::nodes, half-open
  int32_t end = 0;
  std::vector<ExplainInput> inputs;
};

// Which operations end splits where a layer would have gone on, counted by operation and device.
struct ExplainCut {
  Op op = Op::kLeaf;
  int32_t home = kNoDevice;    // of the layer
  int32_t device = kNoDevice;  // where it runs
  bool refused = false;        // home cannot run it; else `why` is that of the first such node
  std::string why;
  int64_t count = 0;
};

// Memory of one device in one phase.
struct ExplainArena {
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // most bytes live at once
  int64_t chunks = 0;
  int64_t crossing_bytes = 0;  // of one copy
  int64_t workspace_bytes = 0;
};

// What one machine sends and gets in a step, tensors between its own devices not counted.
struct ExplainProcess {
  std::string host;
  int64_t executes = 0;  // messages from the coordinator, and replies to it
  int64_t replies = 0;
  int64_t sends = 0;  // tensors to other machines
  int64_t sent_bytes = 0;
  int64_t receives = 0;
  int64_t received_bytes = 0;
};

struct ExplainPhase {
  std::string name;  // "prefill" or "decode"
  int64_t tokens = 0;
  int64_t outputs = 0;
  std::vector<ExplainNode> nodes;
  std::vector<ExplainPass> passes;
  std::vector<ExplainSplit> splits;
  std::vector<ExplainCut> cuts;      // the most frequent first
  std::vector<ExplainArena> arenas;  // by device
  std::vector<ExplainProcess> processes;
  int64_t copies = 0;  // tensors copied between devices, inputs not counted
  int64_t copied_bytes = 0;
  int64_t staged_bytes = 0;  // of these, weights
  int64_t input_bytes = 0;
  int64_t fused = 0;
  int64_t resolved = 0;
  int64_t in_place = 0;
  int32_t rotating_copies = 1;       // more than 1: steps overlap
  std::string pipeline_refusal;      // why not
  std::vector<std::string> remarks;  // of the passes
  // With groups the phase is that of the graph rank by rank.
  int64_t split_nodes = 0;  // of the model's graph, that ranks share
  int64_t reductions = 0;   // sums over the ranks of a group, per step
  int64_t gathers = 0;
  int64_t choices = 0;                    // that rank 0 makes for all
  std::vector<std::string> rank_remarks;  // what could not be split
  std::vector<ExplainCollective> collectives;
  std::vector<ExplainRankTraffic> rank_traffic;  // by rank of each group
};

// A thing worth knowing, and what to do about it.
struct ExplainRemark {
  std::string code;   // "splits", "staged-weights", ...; see docs/explain.md
  std::string phase;  // empty: both
  std::string text;
  std::string action;  // may be empty
  friend bool operator==(const ExplainRemark&, const ExplainRemark&) = default;
};

struct ExplainReport {
  std::string model;  // its name, may be empty
  std::string architecture;
  int64_t layers = 0;
  int64_t experts = 0;  // of a layer, 0: dense
  int64_t batch = 0;
  int64_t sequences = 0;
  int64_t context = 0;
  std::string key_type;
  std::string value_type;
  std::vector<ExplainDevice> devices;
  std::vector<ExplainGroup> groups;  // empty without --split-mode tensor
  // layers + 1: the last is the output layer. Of a group the first rank.
  std::vector<int32_t> layer_devices;
  int32_t input_device = 0;
  std::vector<ExplainWeight> weights;
  std::vector<ExplainCache> caches;
  std::vector<ExplainPhase> phases;  // prefill, decode
  std::vector<ExplainRemark> remarks;
};

// Places the model and plans a prompt step and a decode step. `devices` is the scheduler's list and
// ends with a CPU. Errors: INVALID_ARGUMENT naming the flag at fault; UNIMPLEMENTED for what no
// device can run.
absl::StatusOr<ExplainReport> MakeExplainReport(const Model& model,
                                                absl::Span<Device* const> devices,
                                                const ExplainOptions& options);

}  // namespace weft
