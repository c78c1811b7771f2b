// Frequency factors of the rotary embedding (spec G.1).
#pragma once

#include "coordinator/models/graph_context.h"

namespace weft {

// F32 [dimensions / 2] by which the frequencies are divided, or kNoNode: rope_freqs.weight where
// the model has it, else for a context beyond the original one rope_factors_long.weight, else
// rope_factors_short.weight. Each layer has a weight of its own that shares the tensor, so that
// it lies where the layer does.
NodeId RopeFactors(GraphContext& context, int64_t layer);

// The tensors of RopeFactors, all optional; those of longrope only with that scaling. Errors: as
// WeightTable::Require.
absl::Status DeclareRopeFactors(const Hyperparameters& model, WeightTable& weights);

}  // namespace weft
