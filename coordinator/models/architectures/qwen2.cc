// qwen2: Llama with rotary pairs in halves and biases on Q, K and V (spec G.6).
#include "coordinator/models/architectures/architectures.h"
#include "coordinator/models/layers/decoder.h"

namespace weft {
namespace {

absl::Status Refine(const GgufMetadata&, Hyperparameters& model) {
  model.rope.kind = RopeKind::kHalf;
  return absl::OkStatus();
}

}  // namespace

Architecture Qwen2Architecture() { return {"qwen2", Refine, DeclareDecoder, BuildDecoder}; }

}  // namespace weft
