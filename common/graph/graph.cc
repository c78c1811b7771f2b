#include "common/graph/graph.h"

namespace weft {

absl::InlinedVector<TensorLayout, 4> Graph::SourceLayouts(NodeId id) const {
  absl::InlinedVector<TensorLayout, 4> layouts;
  for (const NodeId source : node(id).sources) layouts.push_back(layout(source));
  return layouts;
}

OpCost NodeCost(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return GetOpInfo(node.op).cost(node.attributes, graph.SourceLayouts(id), node.layout);
}

const CollectiveKey* CollectiveKeyOf(const Node& node) {
  if (const auto* reduce = std::get_if<AllReduceAttributes>(&node.attributes)) return &reduce->key;
  const auto* gather = std::get_if<AllGatherAttributes>(&node.attributes);
  return gather == nullptr ? nullptr : &gather->key;
}

}  // namespace weft
