// Changes one thing of a graph, as an enemy would.
#pragma once

#include <string>

#include "common/base/random.h"
#include "common/graph/graph.h"

namespace weft {

// Changes an op, an attribute, a source, a layout, a root or an offset of one node; returns what.
std::string MutateGraph(Random& random, Graph& graph);

}  // namespace weft
