// A memory plan run on symbolic memory: every cell knows which tensor it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "coordinator/scheduler/memory_planner.h"

namespace weft {

// What is wrong with the plan of `graph` run in its order, empty if nothing: a place that is
// misaligned or outside its chunk (INV-C2), a chunk larger than allowed or than what was placed in
// it (INV-C3), a reader or a step's end that finds another tensor's data (INV-C1), a result over a
// source where the op may not (INV-C5), a lower bound that is not the most bytes live at once, and
// a tensor in a pool without reuse over another one. Arguments as of PlanMemory.
std::string ReplayMemory(const Graph& graph, const std::vector<int32_t>& pool_of,
                         const std::vector<MemoryPool>& pools, const MemoryOptions& options,
                         const MemoryPlan& plan);

}  // namespace weft
