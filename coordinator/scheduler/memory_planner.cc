#include "coordinator/scheduler/memory_planner.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/free_list.h"
#include "coordinator/scheduler/interval_packing.h"

namespace weft {
namespace {

constexpr int64_t kMaxPoolBytes = int64_t{1} << 46;

// One pool while it is planned.
class Arena {
 public:
  explicit Arena(const MemoryPool& pool) : pool_(pool) {}

  const MemoryPool& pool() const { return pool_; }
  int64_t live_bytes() const { return live_bytes_; }

  // Best fit over all chunks; else the chunk that grows least; else a new one.
  void Take(int64_t bytes, MemoryPlace& place) {
    int32_t best = -1;
    int64_t best_size = std::numeric_limits<int64_t>::max();
    for (size_t c = 0; c < chunks_.size(); ++c) {
      const std::optional<int64_t> size = chunks_[c].Fit(bytes);
      if (!size || *size >= best_size) continue;
      best = static_cast<int32_t>(c);
      best_size = *size;
    }
    int64_t best_growth = std::numeric_limits<int64_t>::max();
    for (size_t c = 0; best_size == std::numeric_limits<int64_t>::max() && c < chunks_.size();
         ++c) {
      const int64_t growth = chunks_[c].Growth(bytes);
      if (growth >= best_growth) continue;
      if (growth > pool_.max_chunk_bytes - chunks_[c].high_water()) continue;
      best = static_cast<int32_t>(c);
      best_growth = growth;
    }
    if (best < 0) {
      best = static_cast<int32_t>(chunks_.size());
      chunks_.emplace_back();
    }
    place.chunk = best;
    place.offset = chunks_[best].Take(bytes);
    live_bytes_ += bytes;
    lower_bound_ = std::max(lower_bound_, live_bytes_);
  }

  void Return(const MemoryPlace& place, int64_t bytes) {
    chunks_[place.chunk].Return(place.offset, bytes);
    live_bytes_ -= bytes;
  }

  PoolPlan Plan() const {
    PoolPlan plan;
    plan.lower_bound = lower_bound_;
    for (const FreeList& chunk : chunks_) plan.chunk_bytes.push_back(chunk.high_water());
    return plan;
  }

 private:
  const MemoryPool& pool_;
  std::vector<FreeList> chunks_;
  int64_t live_bytes_ = 0;
  int64_t lower_bound_ = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, absl::Span<const int32_t> pool_of, absl::Span<const MemoryPool> pools,
          const MemoryOptions& options)
      : graph_(graph),
        pool_of_(pool_of),
        options_(options),
        arenas_(pools.begin(), pools.end()),
        readers_(graph.nodes().size()),
        bytes_(graph.nodes().size()),
        block_of_(graph.nodes().size(), -1) {
    plan_.places.resize(graph.nodes().size());
    for (const LateRead& read : options.late_reads) {
      late_.insert(read.at);
      ends_at_[read.until].push_back(read.at);
    }
  }

  absl::StatusOr<MemoryPlan> Run() {
    CountReaders();
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (OwnsMemory(id)) RETURN_IF_ERROR(Place(id));
      now_ = i;
      Release(id);
    }
    for (const Arena& arena : arenas_) plan_.pools.push_back(arena.Plan());
    for (size_t p = 0; p < arenas_.size(); ++p) Repack(static_cast<int32_t>(p));
    return std::move(plan_);
  }

 private:
  // True for tensors that take memory of a pool: what a device computes into memory of its own.
  bool OwnsMemory(NodeId id) const { return graph_.Executes(id) && graph_.Root(id) == id; }

  int32_t& Readers(NodeId tensor) { return readers_[Index(graph_.Root(tensor))]; }

  // A tensor lives until its last reader, direct or through views, has run. Every use counts once
  // for the root.
  void CountReaders() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      // A view reads nothing; what reads the view counts, since its root is the same.
      if (graph_.Executes(NodeId{i})) {
        for (const NodeId source : graph_.node(NodeId{i}).sources) ++Readers(source);
      }
      if (graph_.node(NodeId{i}).output) ++Readers(NodeId{i});  // never read
    }
    for (const ExtraRead& read : options_.extra_reads) ++Readers(read.tensor);
  }

  // Where taking blocks in the order of nodes left gaps: all at once, if that needs less.
  void Repack(int32_t p) {
    PoolPlan& pool = plan_.pools[p];
    if (pool.chunk_bytes.size() != 1 || pool.Bytes() == pool.lower_bound) return;
    std::vector<Lifetime> lifetimes;
    std::vector<int32_t> packed(blocks_.size(), -1);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].pool != p) continue;
      packed[b] = static_cast<int32_t>(lifetimes.size());
      lifetimes.push_back(blocks_[b].life);
    }
    const Packing packing = PackIntervals(lifetimes, graph_.size());
    if (packing.bytes >= pool.Bytes()) return;
    pool.chunk_bytes[0] = packing.bytes;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (plan_.places[i].pool != p) continue;
      plan_.places[i].offset = packing.offsets[packed[block_of_[i]]];
    }
  }

  absl::Status Place(NodeId id) {
    const int32_t p = pool_of_[Index(id)];
    Arena& arena = arenas_[p];
    const MemoryPool& pool = arena.pool();
    const std::optional<int64_t> bytes =
        CheckedAlignUp(pool.tensor_bytes(graph_.layout(id)), pool.alignment);
    if (!bytes || *bytes > kMaxPoolBytes - arena.live_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeText(graph_, id), " ", LayoutText(graph_.layout(id)), " is too large"));
    }
    if (*bytes > pool.max_chunk_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(NodeText(graph_, id), " takes ", *bytes,
                                                       " bytes, the largest allocation there is ",
                                                       pool.max_chunk_bytes));
    }
    // A tensor without elements still gets a place, so that its address is valid.
    bytes_[Index(id)] = std::max(*bytes, pool.alignment);
    MemoryPlace& place = plan_.places[Index(id)];
    place.pool = p;
    if (options_.in_place && pool.reuse && TakeOverSource(id)) return absl::OkStatus();
    arena.Take(bytes_[Index(id)], place);
    block_of_[Index(id)] = static_cast<int32_t>(blocks_.size());
    // Until it is freed it lives to the end.
    blocks_.push_back({p, {Index(id), graph_.size() - 1, bytes_[Index(id)]}});
    return absl::OkStatus();
  }

  // Writes over a source of the same layout that this node alone reads, once, and that has no other
  // names (views).
  bool TakeOverSource(NodeId id) {
    const Node& node = graph_.node(id);
    if (!GetOpInfo(node.op).in_place) return false;
    const bool symmetric =
        node.op == Op::kAdd || node.op == Op::kMul || node.op == Op::kSub || node.op == Op::kDiv;
    MemoryPlace& place = plan_.places[Index(id)];
    for (size_t k = 0; k < node.sources.size() && (k == 0 || symmetric); ++k) {
      const NodeId source = node.sources[k];
      const MemoryPlace& taken = plan_.places[Index(source)];
      if (!OwnsMemory(source) || taken.pool != place.pool || readers_[Index(source)] != 1 ||
          graph_.layout(source) != node.layout || bytes_[Index(source)] != bytes_[Index(id)]) {
        continue;
      }
      place = taken;
      block_of_[Index(id)] = block_of_[Index(source)];
      bytes_[Index(source)] = 0;  // no longer the owner: nothing to return
      ++plan_.in_place_count;
      return true;
    }
    return false;
  }

  void Release(NodeId id) {
    if (!graph_.Executes(id)) return;
    if (!late_.contains(id)) DropSources(id);
    if (const auto ends = ends_at_.find(id); ends != ends_at_.end()) {
      for (const NodeId late : ends->second) DropSources(late);
    }
    const std::vector<ExtraRead>& extra = options_.extra_reads;
    for (; next_extra_ < extra.size() && extra[next_extra_].at == id; ++next_extra_) {
      Drop(graph_.Root(extra[next_extra_].tensor));
    }
    // What nobody reads is free at once.
    if (OwnsMemory(id) && readers_[Index(id)] == 0) Free(id);
  }

  void DropSources(NodeId id) {
    for (const NodeId source : graph_.node(id).sources) Drop(graph_.Root(source));
  }

  void Drop(NodeId root) {
    if (--readers_[Index(root)] == 0 && OwnsMemory(root)) Free(root);
  }

  void Free(NodeId id) {
    int64_t& bytes = bytes_[Index(id)];
    Arena& arena = arenas_[pool_of_[Index(id)]];
    if (bytes == 0 || !arena.pool().reuse) return;
    arena.Return(plan_.places[Index(id)], bytes);
    blocks_[block_of_[Index(id)]].life.last = now_;
    bytes = 0;
  }

  const Graph& graph_;
  const absl::Span<const int32_t> pool_of_;
  const MemoryOptions& options_;
  std::vector<Arena> arenas_;
  std::vector<int32_t> readers_;  // uses of a root that have not run yet
  std::vector<int64_t> bytes_;    // held by each node, 0 once freed or taken over
  // Memory that one tensor takes, and those that take it over.
  struct Block {
    int32_t pool = -1;
    Lifetime life;
  };
  std::vector<Block> blocks_;
  std::vector<int32_t> block_of_;  // by node
  int32_t now_ = 0;                // node that runs
  size_t next_extra_ = 0;
  absl::flat_hash_set<NodeId> late_;                          // nodes that read late
  absl::flat_hash_map<NodeId, std::vector<NodeId>> ends_at_;  // those that are done at a node
  MemoryPlan plan_;
};

}  // namespace

int64_t PoolPlan::Bytes() const {
  int64_t sum = 0;
  for (const int64_t bytes : chunk_bytes) sum += bytes;
  return sum;
}

absl::StatusOr<MemoryPlan> PlanMemory(const Graph& graph, absl::Span<const int32_t> pool_of,
                                      absl::Span<const MemoryPool> pools,
                                      const MemoryOptions& options) {
  return Planner(graph, pool_of, pools, options).Run();
}

}  // namespace weft
