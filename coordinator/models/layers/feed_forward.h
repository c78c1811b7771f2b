// The feed-forward half of a layer: dense SwiGLU, or a mixture of experts.
#pragma once

#include "coordinator/models/graph_context.h"

namespace weft {

// h [n_embd, T] -> [n_embd, T]: down . (silu(gate . h) * (up . h)), biases where present.
NodeId DenseFeedForward(GraphContext& context, int64_t layer, NodeId h);

// Spec G.4: router, top-k of its probabilities, weighted sum of the chosen experts in order of
// choice. `positions` I32 of h's columns: padding (negative) routes to no expert and gives zeros.
NodeId ExpertFeedForward(GraphContext& context, int64_t layer, NodeId h, NodeId positions);

// The tensors of either. Errors: as WeightTable::Require.
absl::Status DeclareDenseFeedForward(const Hyperparameters& model, int32_t layer,
                                     WeightTable& weights);
absl::Status DeclareExperts(const Hyperparameters& model, int32_t layer, WeightTable& weights);

}  // namespace weft
