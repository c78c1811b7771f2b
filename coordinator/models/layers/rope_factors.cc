#include "coordinator/models/layers/rope_factors.h"

#include "common/base/status_macros.h"

namespace weft {

NodeId RopeFactors(GraphContext& context) {
  const NodeId factors = context.Weight("rope_freqs.weight");
  if (factors != kNoNode) return factors;
  const bool beyond = context.shape().context > context.model().rope.original_context;
  return context.Weight(beyond ? "rope_factors_long.weight" : "rope_factors_short.weight");
}

absl::Status DeclareRopeFactors(const Hyperparameters& model, WeightTable& weights) {
  const Extents ne = {model.rope.dimensions / 2, 1, 1, 1};
  RETURN_IF_ERROR(weights.Allow("rope_freqs.weight", WeightRole::kRopeFactors, -1, ne, true));
  if (model.rope_scaling != RopeScaling::kLongRope) return absl::OkStatus();
  RETURN_IF_ERROR(
      weights.Allow("rope_factors_long.weight", WeightRole::kRopeFactors, -1, ne, true));
  return weights.Allow("rope_factors_short.weight", WeightRole::kRopeFactors, -1, ne, true);
}

}  // namespace weft
