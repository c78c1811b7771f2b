#include "coordinator/models/layers/rope_factors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// A use of tensor `name` in every layer, where the file has it.
absl::Status ShareWithLayers(const std::string& name, const Hyperparameters& model,
                             WeightTable& weights) {
  if (weights.file().FindTensor(name) == nullptr) return absl::OkStatus();
  const Extents ne = {model.rope.dimensions / 2, 1, 1, 1};
  for (int32_t layer = 0; layer < model.n_layer; ++layer) {
    RETURN_IF_ERROR(weights.Share(absl::StrCat("blk.", layer, ".", name), name,
                                  WeightRole::kRopeFactors, layer, ne, true));
  }
  return absl::OkStatus();
}

}  // namespace

NodeId RopeFactors(GraphContext& context, int64_t layer) {
  const NodeId factors = context.LayerWeight(layer, "rope_freqs.weight");
  if (factors != kNoNode) return factors;
  const bool beyond = context.shape().context > context.model().rope.original_context;
  return context.LayerWeight(layer,
                             beyond ? "rope_factors_long.weight" : "rope_factors_short.weight");
}

absl::Status DeclareRopeFactors(const Hyperparameters& model, WeightTable& weights) {
  RETURN_IF_ERROR(ShareWithLayers("rope_freqs.weight", model, weights));
  if (model.rope_scaling != RopeScaling::kLongRope) return absl::OkStatus();
  RETURN_IF_ERROR(ShareWithLayers("rope_factors_long.weight", model, weights));
  return ShareWithLayers("rope_factors_short.weight", model, weights);
}

}  // namespace weft
