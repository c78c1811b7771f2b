// Pass 5: cuts the order of nodes into runs on one device and lists what each run must copy first
// (spec B.5).
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class Cutter {
 public:
  Cutter(const PlanContext& context, Plan& plan) : context_(context), plan_(plan) {}

  absl::Status Run() {
    const Graph& graph = context_.graph();
    int32_t executed = 0;
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.Executes(NodeId{i})) continue;
      RETURN_IF_ERROR(CheckWrites(NodeId{i}));
      CollectMissing(NodeId{i});
      if (executed++ == 0) {
        plan_.splits.push_back({plan_.assignments[i].device, 0, 0, {}});
      } else if (MustCut(NodeId{i})) {
        Open(i);
      }
      for (Replica& replica : missing_) Add(replica);
      last_op_ = graph.node(NodeId{i}).op;
    }
    if (!plan_.splits.empty()) plan_.splits.back().end = graph.size();
    return absl::OkStatus();
  }

 private:
  // What an op changes must be the tensor itself, not a copy.
  absl::Status CheckWrites(NodeId id) const {
    const Node& node = context_.graph().node(id);
    const int32_t d = plan_.assignments[Index(id)].device;
    if (!GetOpInfo(node.op).writes_source || context_.Reads(plan_, d, node.sources[0])) {
      return absl::OkStatus();
    }
    const BufferType* type = context_.MemoryType(plan_, node.sources[0]);
    return absl::InvalidArgumentError(absl::StrCat(
        NodeText(context_.graph(), id), " on ", context_.device(d).name(), " changes memory of ",
        type == nullptr ? "no device" : type->name(), ", which that device cannot use"));
  }

  // The replicas that a node needs and its device does not have yet.
  void CollectMissing(NodeId id) {
    missing_.clear();
    const int32_t d = plan_.assignments[Index(id)].device;
    for (const NodeId source : context_.graph().node(id).sources) {
      if (context_.Reads(plan_, d, source)) continue;
      Replica replica = ReplicaFor(source, d);
      const auto known = index_.find({replica.source, context_.MemoryOf(d)});
      if (known != index_.end() && Reusable(plan_.replicas[known->second])) continue;
      const bool listed = std::any_of(missing_.begin(), missing_.end(), [&](const Replica& other) {
        return other.source == replica.source;
      });
      if (!listed) missing_.push_back(replica);
    }
  }

  bool Reusable(const Replica& replica) const {
    return replica.kind == ReplicaKind::kInput || context_.Enabled(Rule::kReuseReplica) ||
           replica.split == static_cast<int32_t>(plan_.splits.size()) - 1;
  }

  Replica ReplicaFor(NodeId source, int32_t d) const {
    const Graph& graph = context_.graph();
    Replica replica;
    replica.source = context_.ReplicatedTensor(source);
    replica.device = d;
    replica.bytes = ByteExtent(graph.layout(replica.source)).value_or(0);
    if (context_.IsHostFilled(source)) {
      replica.kind = ReplicaKind::kInput;
    } else if (context_.IsWeight(source)) {
      replica.ids = context_.ExpertIds(plan_, d, replica.source);
      replica.kind = replica.ids == kNoNode ? ReplicaKind::kWeight : ReplicaKind::kExperts;
    }
    return replica;
  }

  bool MustCut(NodeId id) const {
    const Split& split = plan_.splits.back();
    if (plan_.assignments[Index(id)].device != split.device) return true;
    // A collective is a split of its own: what came before is then known to others before this
    // waits for them, and what follows copies nothing before that.
    if (IsCollective(context_.graph().node(id).op) || IsCollective(last_op_)) return true;
    int64_t staged = 0;
    for (const Replica& replica : missing_) {
      if (replica.kind == ReplicaKind::kExperts && ProducedHere(replica.ids)) return true;
      // A copy runs before the split's nodes: what a node of this split makes is never missing on
      // its own device, except where it works in another device's memory.
      if (replica.kind == ReplicaKind::kTensor && ProducedHere(replica.source)) return true;
      if (IsStaged(replica)) staged += replica.bytes;
    }
    if (!context_.Enabled(Rule::kStagedLimit) || staged == 0) return false;
    return staged_bytes_ > 0 &&
           staged > context_.input().options.staged_bytes_limit - staged_bytes_;
  }

  static bool IsStaged(const Replica& replica) {
    return replica.kind == ReplicaKind::kWeight || replica.kind == ReplicaKind::kExperts;
  }

  bool ProducedHere(NodeId id) const {
    const NodeId base = context_.Base(id);
    return context_.graph().Executes(base) && Index(base) >= plan_.splits.back().begin &&
           plan_.assignments[Index(base)].device == plan_.splits.back().device;
  }

  void Open(int32_t begin) {
    plan_.splits.back().end = begin;
    plan_.splits.push_back({plan_.assignments[begin].device, begin, begin, {}});
    staged_bytes_ = 0;
  }

  void Add(Replica& replica) {
    replica.split = static_cast<int32_t>(plan_.splits.size()) - 1;
    if (IsStaged(replica)) staged_bytes_ += replica.bytes;
    const auto at = static_cast<int32_t>(plan_.replicas.size());
    index_[{replica.source, context_.MemoryOf(replica.device)}] = at;
    plan_.splits.back().inputs.push_back(at);
    plan_.replicas.push_back(replica);
  }

  const PlanContext& context_;
  Plan& plan_;
  absl::flat_hash_map<std::pair<NodeId, int32_t>, int32_t>
      index_;  // the latest replica in a memory
  std::vector<Replica> missing_;
  Op last_op_ = Op::kLeaf;    // executed before
  int64_t staged_bytes_ = 0;  // weights copied for the open split
};

class Cut final : public Pass {
 public:
  std::string_view name() const override { return "cut"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    plan.splits.clear();
    plan.replicas.clear();
    RETURN_IF_ERROR(Cutter(context, plan).Run());
    return !plan.splits.empty();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCutPass() { return std::make_unique<Cut>(); }

}  // namespace weft
