// llama: Llama 1 to 3 and, with experts, Mixtral (spec G.5). Rotary pairs are adjacent;
// rope_freqs.weight, where present, divides the frequencies (Llama 3's scaling); chosen experts'
// weights are normalised.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/models/architectures/architectures.h"
#include "coordinator/models/layers/decoder.h"

namespace weft {
namespace {

absl::Status Refine(const GgufMetadata& metadata, Hyperparameters& model) {
  model.rope.kind = RopeKind::kAdjacent;
  if (model.rope_scaling == RopeScaling::kLongRope) {
    return absl::UnimplementedError(
        "key 'llama.rope.scaling.type' is longrope, which weft does not "
        "compute for this architecture");
  }
  ASSIGN_OR_RETURN(model.expert_weights_norm, metadata.BoolOr("llama.expert_weights_norm", true));
  return absl::OkStatus();
}

absl::Status Declare(const Hyperparameters& model, WeightTable& weights) {
  RETURN_IF_ERROR(DeclareDecoder(model, weights));
  return weights.Allow("rope_freqs.weight", WeightRole::kRopeFactors, -1,
                       {model.rope.dimensions / 2, 1, 1, 1}, true);
}

}  // namespace

Architecture LlamaArchitecture() { return {"llama", Refine, Declare, BuildDecoder}; }

}  // namespace weft
