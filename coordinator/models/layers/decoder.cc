#include "coordinator/models/layers/decoder.h"

#include <vector>

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

// Attention of a layer on the selected tokens, without the residual.
NodeId AttentionBlock(GraphContext& context, int64_t layer, NodeId x, bool store_only) {
  const NodeId norm = context.LayerWeight(layer, "attn_norm.weight");
  const NodeId h = context.builder().RmsNorm(x, norm, context.model().rms_epsilon);
  return SelfAttention(context, layer, h, store_only);
}

NodeId AddAttention(GraphContext& context, int64_t layer, NodeId attention, NodeId x) {
  GraphBuilder& g = context.builder();
  return g.Name(g.Add(attention, x), absl::StrCat("attention.", layer));
}

// x behind the attention of a layer -> x behind the layer.
NodeId FeedForwardBlock(GraphContext& context, int64_t layer, NodeId x, NodeId positions) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  const NodeId f = g.RmsNorm(x, context.LayerWeight(layer, "ffn_norm.weight"), model.rms_epsilon);
  const NodeId y = model.n_expert > 0 ? ExpertFeedForward(context, layer, f, positions)
                                      : DenseFeedForward(context, layer, f);
  return g.Name(g.Add(y, x), absl::StrCat("layer.", layer));
}

// A tensor of the step's tokens, or of each half of them.
class TokenParts {
 public:
  explicit TokenParts(GraphContext& context) : context_(context) {
    using Half = GraphContext::Half;
    halves_ = context.shape().halves ? std::vector<Half>{Half::kFirst, Half::kSecond}
                                     : std::vector<Half>{Half::kBoth};
    parts_.assign(halves_.size(), kNoNode);
  }

  // Each part becomes next(part), with its tokens selected. A step like this for both halves is
  // what one of them computes while the other's sums travel: they end where a sum does.
  template <typename Next>
  void ForEach(Next&& next) {
    for (size_t i = 0; i < halves_.size(); ++i) {
      context_.Select(halves_[i]);
      parts_[i] = next(parts_[i]);
    }
    context_.Select(GraphContext::Half::kBoth);
  }

  NodeId Joined() const {
    return parts_.size() == 1 ? parts_[0] : context_.builder().Concat(parts_[0], parts_[1], 1);
  }

 private:
  GraphContext& context_;
  std::vector<GraphContext::Half> halves_;
  std::vector<NodeId> parts_;
};

}  // namespace

NodeId BuildDecoder(GraphContext& context) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  const GraphShape& shape = context.shape();
  context.Input(ModelInput::kPositions);
  context.Input(ModelInput::kTokens);
  const NodeId table = context.Weight("token_embd.weight");
  TokenParts x(context);
  x.ForEach([&](NodeId) {
    return g.Name(g.GetRows(table, context.Input(ModelInput::kTokens)), "embedding");
  });
  const int64_t last = model.n_layer - 1;
  for (int64_t layer = 0; layer < last; ++layer) {
    g.set_layer(static_cast<int32_t>(layer));
    x.ForEach([&](NodeId part) {
      const NodeId attention = AttentionBlock(context, layer, part, false);
      return AddAttention(context, layer, attention, part);
    });
    x.ForEach([&](NodeId part) {
      return FeedForwardBlock(context, layer, part, context.Input(ModelInput::kPositions));
    });
  }
  g.set_layer(static_cast<int32_t>(last));
  TokenParts attention = x;
  attention.ForEach(
      [&](NodeId part) { return AttentionBlock(context, last, part, shape.outputs == 0); });
  if (shape.outputs == 0) return kNoNode;
  // Only the requested rows go on; their keys and values are all stored by now.
  const NodeId attention_rows = SelectRows(context, attention.Joined());
  const NodeId x_rows = SelectRows(context, x.Joined());
  const NodeId positions = model.n_expert > 0 ? SelectPositions(context) : kNoNode;
  const NodeId z = FeedForwardBlock(context, last,
                                    AddAttention(context, last, attention_rows, x_rows), positions);
  g.set_layer(-1);
  const NodeId y = g.RmsNorm(z, context.Weight("output_norm.weight"), model.rms_epsilon);
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
