#include "coordinator/scheduler/liveness_allocator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/free_list.h"

namespace weft {
namespace {

constexpr int64_t kMaxArenaBytes = int64_t{1} << 46;

class Planner {
 public:
  Planner(const Graph& graph, const ArenaOptions& options)
      : graph_(graph), options_(options), readers_(graph.size()), bytes_(graph.size()) {
    plan_.offsets.assign(graph.size(), -1);
  }

  absl::StatusOr<ArenaPlan> Run() {
    CountReaders();
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (OwnsMemory(id)) RETURN_IF_ERROR(Place(id));
      Release(id);
    }
    plan_.bytes = free_list_.high_water();
    return std::move(plan_);
  }

 private:
  // True for tensors that take arena memory: what a device computes into memory of its own.
  bool OwnsMemory(NodeId id) const { return graph_.Executes(id) && graph_.Root(id) == id; }

  // A tensor lives until its last reader, direct or through views, has run. Every use counts once
  // for the root.
  void CountReaders() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        // A view reads nothing; what reads the view counts below, since its root is the same.
        if (graph_.Executes(NodeId{i})) ++readers_[Index(graph_.Root(source))];
      }
      if (graph_.node(NodeId{i}).output) ++readers_[Index(graph_.Root(NodeId{i}))];  // never read
    }
  }

  absl::Status Place(NodeId id) {
    const std::optional<int64_t> bytes =
        CheckedAlignUp(options_.tensor_bytes(graph_.layout(id)), options_.alignment);
    if (!bytes || *bytes > kMaxArenaBytes - live_bytes_) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", Index(id), " ", LayoutText(graph_.layout(id)), " is too large"));
    }
    // A tensor without elements still gets a place, so that its address is valid.
    bytes_[Index(id)] = std::max(*bytes, options_.alignment);
    if (options_.in_place && TakeOverSource(id)) return absl::OkStatus();
    plan_.offsets[Index(id)] = free_list_.Take(bytes_[Index(id)]);
    live_bytes_ += bytes_[Index(id)];
    plan_.lower_bound = std::max(plan_.lower_bound, live_bytes_);
    return absl::OkStatus();
  }

  // Writes over a source of the same layout that this node alone reads, once, and that has no other
  // names (views).
  bool TakeOverSource(NodeId id) {
    const Node& node = graph_.node(id);
    if (!GetOpInfo(node.op).in_place) return false;
    const bool symmetric =
        node.op == Op::kAdd || node.op == Op::kMul || node.op == Op::kSub || node.op == Op::kDiv;
    for (size_t k = 0; k < node.sources.size() && (k == 0 || symmetric); ++k) {
      const NodeId source = node.sources[k];
      if (!OwnsMemory(source) || plan_.offsets[Index(source)] < 0 || readers_[Index(source)] != 1 ||
          graph_.layout(source) != node.layout || bytes_[Index(source)] != bytes_[Index(id)]) {
        continue;
      }
      plan_.offsets[Index(id)] = plan_.offsets[Index(source)];
      bytes_[Index(source)] = 0;  // no longer the owner: nothing to return
      return true;
    }
    return false;
  }

  void Release(NodeId id) {
    if (!graph_.Executes(id)) return;
    for (const NodeId source : graph_.node(id).sources) Drop(graph_.Root(source));
    // What nobody reads is free at once.
    if (OwnsMemory(id) && readers_[Index(id)] == 0) Free(id);
  }

  void Drop(NodeId root) {
    if (--readers_[Index(root)] == 0 && OwnsMemory(root)) Free(root);
  }

  void Free(NodeId id) {
    int64_t& bytes = bytes_[Index(id)];
    if (bytes == 0) return;
    free_list_.Return(plan_.offsets[Index(id)], bytes);
    live_bytes_ -= bytes;
    bytes = 0;
  }

  const Graph& graph_;
  const ArenaOptions& options_;
  std::vector<int32_t> readers_;  // uses of a root that have not run yet
  std::vector<int64_t> bytes_;    // held by each node, 0 once freed or taken over
  FreeList free_list_;
  int64_t live_bytes_ = 0;
  ArenaPlan plan_;
};

}  // namespace

absl::StatusOr<ArenaPlan> PlanArena(const Graph& graph, const ArenaOptions& options) {
  return Planner(graph, options).Run();
}

}  // namespace weft
