// Plans where intermediate tensors lie: places in chunks of memory pools, from reference counts and
// free lists, before any memory exists (spec chapter C). A pool is the arena of one kind of memory,
// shared by all devices that compute in it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"

namespace weft {

struct MemoryPool {
  int64_t alignment = 64;                                         // power of two
  int64_t max_chunk_bytes = std::numeric_limits<int64_t>::max();  // largest single allocation
  // Bytes that a tensor takes; at least its byte extent.
  std::function<int64_t(const TensorLayout&)> tensor_bytes;
  // False: what is placed keeps its memory to the end of the step.
  bool reuse = true;
};

struct MemoryPlace {
  int32_t pool = -1;  // -1: no memory of its own (leafs, views, ops that write their source)
  int32_t chunk = -1;
  int64_t offset = -1;
  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

struct PoolPlan {
  std::vector<int64_t> chunk_bytes;
  int64_t lower_bound = 0;  // most bytes live at once: no plan can be smaller
  int64_t Bytes() const;
  friend bool operator==(const PoolPlan&, const PoolPlan&) = default;
};

struct MemoryPlan {
  std::vector<MemoryPlace> places;  // per node
  std::vector<PoolPlan> pools;
  int64_t in_place_count = 0;  // results that took over a source's memory
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// Node `at` reads `tensor` beside its sources (a copy of used experts reads their ids).
struct ExtraRead {
  NodeId at = kNoNode;
  NodeId tensor = kNoNode;
};

// Node `at` is not done with its sources before `until`, a later one, runs.
struct LateRead {
  NodeId at = kNoNode;
  NodeId until = kNoNode;
};

struct MemoryOptions {
  bool in_place = true;                // let ops write over a source that nobody else reads
  std::vector<ExtraRead> extra_reads;  // in order of `at`
  std::vector<LateRead> late_reads;
};

// Nodes run in graph order; pool_of[i] is the pool of node i where it owns memory. Outputs keep
// theirs to the end. Errors: INVALID_ARGUMENT if sizes overflow; RESOURCE_EXHAUSTED naming a tensor
// that is larger than any allocation of its pool.
absl::StatusOr<MemoryPlan> PlanMemory(const Graph& graph, absl::Span<const int32_t> pool_of,
                                      absl::Span<const MemoryPool> pools,
                                      const MemoryOptions& options);

}  // namespace weft
