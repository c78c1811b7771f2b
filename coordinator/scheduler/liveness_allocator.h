// Plans where intermediate tensors lie in an arena: offsets from reference counts and free lists,
// before any memory exists (spec chapter C).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"

namespace weft {

struct ArenaPlan {
  // Byte offset of each node in the arena; -1 for nodes without memory of their own there (leafs,
  // views, ops that write their source).
  std::vector<int64_t> offsets;
  int64_t bytes = 0;        // size of the arena
  int64_t lower_bound = 0;  // most bytes live at once: no plan can be smaller
};

struct ArenaOptions {
  int64_t alignment = 64;  // power of two
  bool in_place = true;    // let ops write over a source that nobody else reads
  // Bytes that a tensor takes; at least its byte extent.
  std::function<int64_t(const TensorLayout&)> tensor_bytes;
};

// Nodes run in graph order. Outputs keep their memory to the end. Errors: INVALID_ARGUMENT if sizes
// overflow.
absl::StatusOr<ArenaPlan> PlanArena(const Graph& graph, const ArenaOptions& options);

}  // namespace weft
