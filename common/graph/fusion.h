// Finds where one fused op can do the work of several nodes: the plain forms of
// common/graph/plain_form.h, backwards.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/graph.h"
#include "common/graph/plain_form.h"

namespace weft {

struct Fusion {
  Node fused;               // takes the place of `result`; its sources are ids of the graph
  NodeId result = kNoNode;  // the node whose value it computes
  std::vector<NodeId>
      replaced;  // the nodes that nothing needs any more, in order; `result` is last
};

// Finds plain forms in parts of one graph, which it looks through once.
class FusionFinder {
 public:
  // `graph` outlives it; `keep`: nodes that must stay.
  FusionFinder(const Graph& graph, absl::Span<const NodeId> keep);
  ~FusionFinder();
  FusionFinder(const FusionFinder&) = delete;
  FusionFinder& operator=(const FusionFinder&) = delete;

  // As FindFusions; the time is linear in `nodes`.
  std::vector<Fusion> Find(absl::Span<const NodeId> nodes,
                           const std::function<bool(const Node& fused)>& supports);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Plain forms among `nodes` (those of one split, in graph order) whose fused op `supports` accepts,
// ordered by result; where two overlap, the one that ends later wins. A node inside a plain form
// blocks it if it is an output, one of `keep`, outside `nodes` or read by others, or if the memory
// of a source is written between. Views cost nothing and block nothing: one that is needed
// elsewhere, or outside `nodes`, stays. The answer depends on the arguments only; the time is
// linear in the size of the graph.
std::vector<Fusion> FindFusions(const Graph& graph, absl::Span<const NodeId> nodes,
                                const std::function<bool(const Node& fused)>& supports,
                                absl::Span<const NodeId> keep);

}  // namespace weft
