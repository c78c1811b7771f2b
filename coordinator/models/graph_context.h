// What an architecture builds a graph with: the builder, the model's numbers, and leafs for
// weights, inputs and caches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/graph/graph_builder.h"
#include "coordinator/models/hyperparameters.h"
#include "coordinator/models/model.h"
#include "coordinator/models/weight_table.h"

namespace weft {

class GraphContext {
 public:
  GraphContext(const Hyperparameters& model, const WeightTable& weights,
               absl::Span<const CacheSpec> caches, const GraphShape& shape)
      : model_(model), weights_(weights), caches_(caches), shape_(shape) {
    inputs_.fill(kNoNode);
    for (auto& inputs : half_inputs_) inputs.fill(kNoNode);
  }

  GraphBuilder& builder() { return builder_; }
  const Hyperparameters& model() const { return model_; }
  const GraphShape& shape() const { return shape_; }

  // From here on tokens(), and inputs with an element per token, are those of that half of the
  // step's tokens, or of all.
  enum class Half : uint8_t { kFirst, kSecond, kBoth };
  void Select(Half half) { half_ = half; }
  int64_t tokens() const { return half_ == Half::kBoth ? shape_.tokens : shape_.tokens / 2; }

  // Leafs are made on first use, so two of these in one call's arguments would number the graph as
  // the compiler likes: name them first. A weight that the table lacks is kNoNode.
  NodeId Weight(std::string_view name);
  // "blk.<layer>.<suffix>"
  NodeId LayerWeight(int64_t layer, std::string_view suffix);
  NodeId Input(ModelInput input);
  NodeId PageTable();
  // Writes a layer's keys or values of the selected tokens; returns the layer's pages, to read
  // after this write and those before it.
  NodeId StoreKeys(int64_t layer, NodeId keys) { return Store(layer, false, keys); }
  NodeId StoreValues(int64_t layer, NodeId values) { return Store(layer, true, values); }

  // Product with "<name>.weight" [k, m], and "<name>.bias" added where there is one:
  // x [k, ...] -> [m, ...].
  NodeId Linear(std::string_view name, NodeId x);
  // "blk.<layer>.<name>"
  NodeId LayerLinear(int64_t layer, std::string_view name, NodeId x);

 private:
  // The id of the layer's cache; -1, and an error of the builder, where there is none.
  int32_t CacheId(int64_t layer, bool is_value);
  NodeId Store(int64_t layer, bool is_value, NodeId rows);
  NodeId InputLeaf(ModelInput input);

  const Hyperparameters& model_;
  const WeightTable& weights_;
  absl::Span<const CacheSpec> caches_;
  GraphShape shape_;
  GraphBuilder builder_;
  absl::flat_hash_map<int32_t, NodeId> weight_leafs_;
  absl::flat_hash_map<int32_t, NodeId> cache_pages_;  // by cache: as the last store left them
  std::array<NodeId, kModelInputCount> inputs_;
  std::array<std::array<NodeId, kModelInputCount>, 2> half_inputs_;
  Half half_ = Half::kBoth;
  NodeId page_table_ = kNoNode;
};

}  // namespace weft
