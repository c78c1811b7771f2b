// Graphs with one fused node each, in every form; and both rewritings as a scheduler does them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/graph/fusion.h"
#include "common/graph/graph_builder.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {

// The last node of `graph` is fused, an output named "fused", of layer 3.
struct FusedForm {
  std::string name;
  Graph graph;
};
std::vector<FusedForm> AllFusedForms();

// The graph with every fused node in its plain form; legal.
Graph Resolve(const Graph& graph);
// The graph with these fusions done; legal.
Graph Fuse(const Graph& graph, const std::vector<Fusion>& fusions);

}  // namespace weft
