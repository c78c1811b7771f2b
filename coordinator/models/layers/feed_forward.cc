#include "coordinator/models/layers/feed_forward.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Least sum by which expert weights are divided (spec G.4): the smallest normal half.
constexpr float kLeastWeightSum = 6.103515625e-5f;

// The weight of each chosen expert [1, u, T].
NodeId ExpertWeights(GraphContext& context, NodeId logits, NodeId probabilities, NodeId ids) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  if (ids == kNoNode) return kNoNode;
  const int64_t tokens = g.layout(ids).ne[1];
  const bool of_selected = model.expert_gating == ExpertGating::kSoftmaxOfSelected;
  const NodeId scores = of_selected ? logits : probabilities;
  // Each token's scores as a table of one-element rows.
  const NodeId table = g.Reshape(scores, {1, model.n_expert, tokens, 1});
  NodeId weights = g.GetRows(table, g.Reshape(ids, {model.n_expert_used, tokens, 1, 1}));
  weights = g.Reshape(weights, {model.n_expert_used, tokens, 1, 1});
  if (of_selected) weights = g.SoftMax(weights);
  if (model.expert_weights_norm) {
    const NodeId sum = g.Clamp(g.SumRows(weights), kLeastWeightSum, 3.0e38f);
    weights = g.Div(weights, sum);
  }
  if (model.expert_weights_scale != 1) weights = g.Scale(weights, model.expert_weights_scale);
  return g.Reshape(weights, {1, model.n_expert_used, tokens, 1});
}

// y[:, t] = sum over s of weighted[:, s, t], in order of s: one view and one add per expert, which
// lets a reduction over ranks be delayed past the sum (spec D.7.1).
NodeId SumChosen(GraphContext& context, NodeId weighted) {
  GraphBuilder& g = context.builder();
  if (weighted == kNoNode) return kNoNode;
  const TensorLayout layout = g.layout(weighted);
  NodeId sum = kNoNode;
  for (int64_t s = 0; s < layout.ne[1]; ++s) {
    const NodeId one =
        g.View(weighted, {layout.ne[0], layout.ne[2], 1, 1},
               {layout.nb[0], layout.nb[2], layout.nb[3], layout.nb[3]}, s * layout.nb[1]);
    sum = s == 0 ? one : g.Add(sum, one);
  }
  return layout.ne[1] == 1 ? g.Contiguous(sum) : sum;
}

// silu(gate . h) * (up . h) of each chosen expert [n_ff_expert, u, T]; gate and up may be one
// weight, gate rows first.
NodeId ExpertHidden(GraphContext& context, int64_t layer, NodeId column, NodeId ids) {
  GraphBuilder& g = context.builder();
  const NodeId both = context.LayerWeight(layer, "ffn_gate_up_exps.weight");
  if (both != kNoNode) return g.Swiglu(g.MulMatId(both, column, ids), kNoNode);
  const NodeId gate = g.MulMatId(context.LayerWeight(layer, "ffn_gate_exps.weight"), column, ids);
  const NodeId up = g.MulMatId(context.LayerWeight(layer, "ffn_up_exps.weight"), column, ids);
  return g.Swiglu(gate, up);
}

}  // namespace

NodeId DenseFeedForward(GraphContext& context, int64_t layer, NodeId h) {
  const NodeId gate = context.LayerLinear(layer, "ffn_gate", h);
  const NodeId up = context.LayerLinear(layer, "ffn_up", h);
  return context.LayerLinear(layer, "ffn_down", context.builder().Swiglu(gate, up));
}

NodeId ExpertFeedForward(GraphContext& context, int64_t layer, NodeId h, NodeId positions) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  if (h == kNoNode) return kNoNode;
  const int64_t tokens = g.layout(h).ne[1];
  const NodeId logits = g.MulMat(context.LayerWeight(layer, "ffn_gate_inp.weight"), h);
  const NodeId probabilities = model.expert_gating == ExpertGating::kSigmoid
                                   ? g.Unary(logits, UnaryKind::kSigmoid)
                                   : g.SoftMax(logits);
  const NodeId ids = g.TopK(probabilities, static_cast<int32_t>(model.n_expert_used), positions);
  const NodeId weights = ExpertWeights(context, logits, probabilities, ids);
  const NodeId column = g.Reshape(h, {model.n_embd, 1, tokens, 1});
  const NodeId hidden = ExpertHidden(context, layer, column, ids);
  const NodeId down = g.MulMatId(context.LayerWeight(layer, "ffn_down_exps.weight"), hidden, ids);
  return SumChosen(context, g.Mul(down, weights));
}

absl::Status DeclareDenseFeedForward(const Hyperparameters& model, int32_t layer,
                                     WeightTable& weights) {
  const std::string blk = absl::StrCat("blk.", layer, ".");
  const int64_t n_ff = model.n_ff[layer];
  if (n_ff < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", model.architecture, ".feed_forward_length' is missing or 0"));
  }
  const auto pair = [&](const char* name, WeightRole role, int64_t in,
                        int64_t out) -> absl::Status {
    RETURN_IF_ERROR(weights.Require(blk + name + ".weight", role, layer, {in, out, 1, 1}));
    return weights.Allow(blk + name + ".bias", role, layer, {out, 1, 1, 1}, true);
  };
  RETURN_IF_ERROR(pair("ffn_gate", WeightRole::kGate, model.n_embd, n_ff));
  RETURN_IF_ERROR(pair("ffn_up", WeightRole::kUp, model.n_embd, n_ff));
  return pair("ffn_down", WeightRole::kDown, n_ff, model.n_embd);
}

absl::Status DeclareExperts(const Hyperparameters& model, int32_t layer, WeightTable& weights) {
  const std::string blk = absl::StrCat("blk.", layer, ".");
  const int64_t experts = model.n_expert;
  const Extents wide = {model.n_embd, model.n_ff_expert, experts, 1};
  const auto stack = [&](const std::string& name, WeightRole role, const Extents& ne) {
    const auto part = [&](int64_t expert) {
      return absl::StrCat(blk, name, ".", expert, ".weight");
    };
    return weights.RequireStack(blk + name + "_exps.weight", part, role, layer, ne);
  };
  RETURN_IF_ERROR(weights.Require(blk + "ffn_gate_inp.weight", WeightRole::kRouter, layer,
                                  {model.n_embd, experts, 1, 1}));
  if (weights.file().FindTensor(blk + "ffn_gate_up_exps.weight") != nullptr) {
    RETURN_IF_ERROR(weights.Require(blk + "ffn_gate_up_exps.weight", WeightRole::kExpertGateUp,
                                    layer, {model.n_embd, 2 * model.n_ff_expert, experts, 1}));
  } else {
    RETURN_IF_ERROR(stack("ffn_gate", WeightRole::kExpertGate, wide));
    RETURN_IF_ERROR(stack("ffn_up", WeightRole::kExpertUp, wide));
  }
  return stack("ffn_down", WeightRole::kExpertDown, {model.n_ff_expert, model.n_embd, experts, 1});
}

}  // namespace weft
