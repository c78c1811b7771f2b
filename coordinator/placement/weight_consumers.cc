#include "coordinator/placement/weight_consumers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {

absl::StatusOr<WeightConsumers> WeightConsumers::Create(const Model& model) {
  GraphShape shape;
  shape.tokens = kSupportTokens;
  shape.outputs = kSupportTokens;
  shape.pages_per_sequence = kSupportTokens / kPageTokens;
  shape.pages = shape.pages_per_sequence + 1;
  shape.key_type = shape.value_type = DType::kF32;  // fits heads of any size
  ASSIGN_OR_RETURN(ModelGraph built, model.BuildGraph(shape));
  WeightConsumers result;
  result.graph_ = std::move(built.graph);
  result.nodes_.resize(model.weights().size());
  const Graph& graph = result.graph_;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph.Executes(NodeId{i})) continue;
    for (const NodeId source : graph.node(NodeId{i}).sources) {
      const LeafAttributes* leaf = graph.leaf(graph.Root(source));
      if (leaf == nullptr || leaf->kind != LeafKind::kWeight) continue;
      std::vector<NodeId>& nodes = result.nodes_[leaf->id];
      if (nodes.empty() || nodes.back() != NodeId{i}) nodes.push_back(NodeId{i});
    }
  }
  return result;
}

Support WeightConsumers::Supports(const Device& device, int32_t id) const {
  for (const NodeId node : nodes_[id]) RETURN_IF_ERROR(device.Supports(graph_, node));
  return absl::OkStatus();
}

}  // namespace weft
