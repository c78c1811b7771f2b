// qwen3moe: qwen3's attention with experts in every layer; softmax over all, the chosen weights
// normalised (spec G.6).
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/models/architectures/architectures.h"
#include "coordinator/models/layers/decoder.h"

namespace weft {
namespace {

absl::Status Refine(const GgufMetadata&, Hyperparameters& model) {
  model.rope.kind = RopeKind::kHalf;
  model.expert_weights_norm = true;
  if (model.n_expert == 0) {
    return absl::InvalidArgumentError("key 'qwen3moe.expert_count' is missing or 0");
  }
  return absl::OkStatus();
}

absl::Status Declare(const Hyperparameters& model, WeightTable& weights) {
  RETURN_IF_ERROR(DeclareDecoder(model, weights));
  return DeclareHeadNorms(model, weights);
}

}  // namespace

Architecture Qwen3MoeArchitecture() { return {"qwen3moe", Refine, Declare, BuildDecoder}; }

}  // namespace weft
