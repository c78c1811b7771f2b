// The skeleton that the plain decoder families share (spec G.3): embedding, layers of attention and
// feed-forward with residuals, final norm, output projection.
#pragma once

#include "coordinator/models/graph_context.h"

namespace weft {

// Token ids to logits [n_vocab, R], or kNoNode where the shape has no outputs. Layers are dense, or
// experts where the model has them.
NodeId BuildDecoder(GraphContext& context);

// The tensors of BuildDecoder without per-head norms. Errors: as WeightTable::Require.
absl::Status DeclareDecoder(const Hyperparameters& model, WeightTable& weights);

// The per-head norms attn_q_norm and attn_k_norm of every layer.
absl::Status DeclareHeadNorms(const Hyperparameters& model, WeightTable& weights);

}  // namespace weft
