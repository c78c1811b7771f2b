#include "coordinator/models/layers/decoder.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/models/layers/attention.h"
#include "coordinator/models/layers/feed_forward.h"

namespace weft {
namespace {

// One column per requested output row. `positions` is of one-element rows for the gather.
NodeId SelectRows(GraphContext& context, NodeId x) {
  return context.builder().GetRows(x, context.Input(ModelInput::kOutputRows));
}

NodeId SelectPositions(GraphContext& context) {
  GraphBuilder& g = context.builder();
  const NodeId column =
      g.Reshape(context.Input(ModelInput::kPositions), {1, context.shape().tokens, 1, 1});
  return g.Reshape(SelectRows(context, column), {context.shape().outputs, 1, 1, 1});
}

}  // namespace

NodeId BuildDecoder(GraphContext& context) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  const GraphShape& shape = context.shape();
  NodeId positions = context.Input(ModelInput::kPositions);
  const NodeId tokens = context.Input(ModelInput::kTokens);
  NodeId x = g.Name(g.GetRows(context.Weight("token_embd.weight"), tokens), "embedding");
  for (int64_t layer = 0; layer < model.n_layer; ++layer) {
    g.set_layer(static_cast<int32_t>(layer));
    const bool last = layer + 1 == model.n_layer;
    const NodeId h =
        g.RmsNorm(x, context.LayerWeight(layer, "attn_norm.weight"), model.rms_epsilon);
    NodeId attention = SelfAttention(context, layer, h, last && shape.outputs == 0);
    if (last && shape.outputs == 0) return kNoNode;
    if (last) {
      // Only the requested rows go on; their keys and values are all stored by now.
      attention = SelectRows(context, attention);
      x = SelectRows(context, x);
      if (model.n_expert > 0) positions = SelectPositions(context);
    }
    x = g.Name(g.Add(attention, x), absl::StrCat("attention.", layer));
    const NodeId f = g.RmsNorm(x, context.LayerWeight(layer, "ffn_norm.weight"), model.rms_epsilon);
    const NodeId y = model.n_expert > 0 ? ExpertFeedForward(context, layer, f, positions)
                                        : DenseFeedForward(context, layer, f);
    x = g.Name(g.Add(y, x), absl::StrCat("layer.", layer));
  }
  g.set_layer(-1);
  const NodeId y = g.RmsNorm(x, context.Weight("output_norm.weight"), model.rms_epsilon);
  if (shape.hidden) return g.Name(y, "hidden");
  return g.Name(context.Linear("output", y), "logits");
}

absl::Status DeclareDecoder(const Hyperparameters& model, WeightTable& weights) {
  const Extents embedding = {model.n_embd, model.n_vocab, 1, 1};
  const Extents norm = {model.n_embd, 1, 1, 1};
  RETURN_IF_ERROR(weights.Require("token_embd.weight", WeightRole::kTokenEmbedding, -1, embedding));
  for (int32_t layer = 0; layer < model.n_layer; ++layer) {
    const std::string blk = absl::StrCat("blk.", layer, ".");
    RETURN_IF_ERROR(
        weights.Require(blk + "attn_norm.weight", WeightRole::kAttentionNorm, layer, norm, true));
    RETURN_IF_ERROR(DeclareAttention(model, layer, weights));
    RETURN_IF_ERROR(
        weights.Require(blk + "ffn_norm.weight", WeightRole::kFeedForwardNorm, layer, norm, true));
    RETURN_IF_ERROR(model.n_expert > 0 ? DeclareExperts(model, layer, weights)
                                       : DeclareDenseFeedForward(model, layer, weights));
  }
  RETURN_IF_ERROR(weights.Require("output_norm.weight", WeightRole::kOutputNorm, -1, norm, true));
  if (weights.file().FindTensor("output.weight") != nullptr) {
    RETURN_IF_ERROR(weights.Require("output.weight", WeightRole::kOutput, -1, embedding));
  } else {
    // Tied: the matrix has two uses, at the two ends of the model, which may lie on two devices.
    RETURN_IF_ERROR(
        weights.Share("output.weight", "token_embd.weight", WeightRole::kOutput, -1, embedding));
  }
  return weights.Allow("output.bias", WeightRole::kOutput, -1, {model.n_vocab, 1, 1, 1}, true);
}

absl::Status DeclareHeadNorms(const Hyperparameters& model, WeightTable& weights) {
  for (int32_t layer = 0; layer < model.n_layer; ++layer) {
    const std::string blk = absl::StrCat("blk.", layer, ".");
    const Extents ne = {model.key_head, 1, 1, 1};
    RETURN_IF_ERROR(
        weights.Require(blk + "attn_q_norm.weight", WeightRole::kQueryNorm, layer, ne, true));
    RETURN_IF_ERROR(
        weights.Require(blk + "attn_k_norm.weight", WeightRole::kKeyNorm, layer, ne, true));
  }
  return absl::OkStatus();
}

}  // namespace weft
