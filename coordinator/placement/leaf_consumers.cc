#include "coordinator/placement/leaf_consumers.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"

namespace weft {
namespace {

DType FittingType(DType dtype, int64_t head) {
  return head % GetDTypeInfo(dtype).block_elements == 0 ? dtype : DType::kF32;
}

}  // namespace

absl::StatusOr<LeafConsumers> LeafConsumers::Create(const Model& model, DType key_type,
                                                    DType value_type) {
  GraphShape shape;
  shape.tokens = kSupportTokens;
  shape.outputs = kSupportTokens;
  shape.pages_per_sequence = kSupportTokens / kPageTokens;
  shape.pages = shape.pages_per_sequence + 1;
  shape.key_type = FittingType(key_type, model.hyperparameters().key_head);
  shape.value_type = FittingType(value_type, model.hyperparameters().value_head);
  ASSIGN_OR_RETURN(ModelGraph built, model.BuildGraph(shape));
  LeafConsumers result;
  result.graph_ = std::move(built.graph);
  result.weights_.resize(model.weights().size());
  result.caches_.resize(model.caches().size());
  const Graph& graph = result.graph_;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph.Executes(NodeId{i})) continue;
    for (const NodeId source : graph.node(NodeId{i}).sources) {
      const LeafAttributes* leaf = graph.leaf(graph.Root(source));
      if (leaf == nullptr) continue;
      if (leaf->kind != LeafKind::kWeight && leaf->kind != LeafKind::kCache) continue;
      std::vector<NodeId>& nodes =
          leaf->kind == LeafKind::kWeight ? result.weights_[leaf->id] : result.caches_[leaf->id];
      if (nodes.empty() || nodes.back() != NodeId{i}) nodes.push_back(NodeId{i});
    }
  }
  return result;
}

Support LeafConsumers::SupportsAll(const Device& device, const std::vector<NodeId>& nodes) const {
  for (const NodeId node : nodes) RETURN_IF_ERROR(device.Supports(graph_, node));
  return absl::OkStatus();
}

Support LeafConsumers::SupportsWeight(const Device& device, int32_t id) const {
  return SupportsAll(device, weights_[id]);
}

Support LeafConsumers::SupportsCache(const Device& device, int32_t id) const {
  return SupportsAll(device, caches_[id]);
}

}  // namespace weft
