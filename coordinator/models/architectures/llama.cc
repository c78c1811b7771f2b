// llama: Llama 1 to 3 and, with experts, Mixtral (spec G.5). Rotary pairs are adjacent;
// rope_freqs.weight, where present, divides the frequencies (Llama 3's scaling), else with longrope
// one of its two factor tensors; chosen experts' weights are normalised.
#include "common/base/status_macros.h"
#include "coordinator/models/architectures/architectures.h"
#include "coordinator/models/layers/decoder.h"
#include "coordinator/models/layers/rope_factors.h"

namespace weft {
namespace {

absl::Status Refine(const GgufMetadata&, Hyperparameters& model) {
  model.rope.kind = RopeKind::kAdjacent;
  // Of the family, whatever the key expert_weights_norm says.
  model.expert_weights_norm = true;
  return absl::OkStatus();
}

absl::Status Declare(const Hyperparameters& model, WeightTable& weights) {
  RETURN_IF_ERROR(DeclareDecoder(model, weights));
  return DeclareRopeFactors(model, weights);
}

}  // namespace

Architecture LlamaArchitecture() { return {"llama", Refine, Declare, BuildDecoder}; }

}  // namespace weft
