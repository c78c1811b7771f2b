// qwen3: no biases, a norm per query and key head before the rotary embedding, head size of its own
// (spec G.6).
#include "common/base/status_macros.h"
#include "coordinator/models/architectures/architectures.h"
#include "coordinator/models/layers/decoder.h"

namespace weft {
namespace {

absl::Status Refine(const GgufMetadata&, Hyperparameters& model) {
  model.rope.kind = RopeKind::kHalf;
  return absl::OkStatus();
}

absl::Status Declare(const Hyperparameters& model, WeightTable& weights) {
  RETURN_IF_ERROR(DeclareDecoder(model, weights));
  return DeclareHeadNorms(model, weights);
}

}  // namespace

Architecture Qwen3Architecture() { return {"qwen3", Refine, Declare, BuildDecoder}; }

}  // namespace weft
