// Random legal graphs that can be computed: nearly every op, views of views, odd sizes.
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/graph/graph.h"
#include "tests/support/host_graph.h"

namespace weft {

// About `op_count` nodes beside leafs and replicas; some are marked as outputs, all packed. Integer
// leafs are meant to hold 0 and 1 only. Aborts the test program if the builder refuses a node.
Graph MakeRandomGraph(Random& random, int op_count);

// Fills every leaf of `host`: integers with 0 and 1, floats with values of [-1, 1], caches with
// zeros.
void FillLeafs(Random& random, const Graph& graph, HostGraph& host);
// One leaf, which is no cache.
void FillLeaf(Random& random, const Graph& graph, NodeId id, HostGraph& host);

}  // namespace weft
