// Self-attention over KV pages: projections, optional biases and per-head norms, rotary embedding,
// output projection.
#pragma once

#include "coordinator/models/graph_context.h"

namespace weft {

// h [n_embd, T] (already normed) -> [n_embd, T]. Weights by the common names of spec G.3:
// attn_q/k/v (or the fused attn_qkv, rows in order Q, K, V), attn_q_norm/attn_k_norm where present
// (before rope), attn_output; biases where present. With `store_only` nothing but the KV store is
// built and kNoNode is returned (no later node reads this layer's result).
NodeId SelfAttention(GraphContext& context, int64_t layer, NodeId h, bool store_only);

// The tensors that SelfAttention uses. Errors: as WeightTable::Require.
absl::Status DeclareAttention(const Hyperparameters& model, int32_t layer, WeightTable& weights);

}  // namespace weft
