#include "coordinator/models/layers/attention.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/models/layers/rope_factors.h"

namespace weft {
namespace {

struct QueryKeyValue {
  NodeId query;  // [head, n_head, T]
  NodeId key;    // [head, n_head_kv, T]
  NodeId value;  // [head, n_head_kv, T]
};

// Rows first .. first + heads * head of the fused product, as heads.
NodeId FusedPart(GraphContext& context, NodeId fused, int64_t first, int64_t head, int64_t heads) {
  GraphBuilder& g = context.builder();
  if (fused == kNoNode) return kNoNode;
  const Extents nb = g.layout(fused).nb;
  return g.View(fused, {head, heads, context.tokens(), 1}, {nb[0], head * nb[0], nb[1], nb[2]},
                first * nb[0]);
}

QueryKeyValue Project(GraphContext& context, int64_t layer, NodeId h) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  const int64_t tokens = context.tokens();
  const int64_t n_head = model.n_head[layer];
  const int64_t n_head_kv = model.n_head_kv[layer];
  if (context.LayerWeight(layer, "attn_qkv.weight") != kNoNode) {
    const NodeId fused = context.LayerLinear(layer, "attn_qkv", h);
    const int64_t queries = n_head * model.key_head;
    const int64_t keys = n_head_kv * model.key_head;
    return {FusedPart(context, fused, 0, model.key_head, n_head),
            FusedPart(context, fused, queries, model.key_head, n_head_kv),
            FusedPart(context, fused, queries + keys, model.value_head, n_head_kv)};
  }
  const auto heads = [&](const char* name, int64_t head, int64_t count) {
    return g.Reshape(context.LayerLinear(layer, name, h), {head, count, tokens, 1});
  };
  return {heads("attn_q", model.key_head, n_head), heads("attn_k", model.key_head, n_head_kv),
          heads("attn_v", model.value_head, n_head_kv)};
}

}  // namespace

NodeId SelfAttention(GraphContext& context, int64_t layer, NodeId h, bool store_only) {
  GraphBuilder& g = context.builder();
  const Hyperparameters& model = context.model();
  QueryKeyValue x = Project(context, layer, h);
  const NodeId query_norm = context.LayerWeight(layer, "attn_q_norm.weight");
  const NodeId key_norm = context.LayerWeight(layer, "attn_k_norm.weight");
  if (query_norm != kNoNode) x.query = g.RmsNorm(x.query, query_norm, model.rms_epsilon);
  if (key_norm != kNoNode) x.key = g.RmsNorm(x.key, key_norm, model.rms_epsilon);
  const NodeId positions = context.Input(ModelInput::kPositions);
  const NodeId factors = RopeFactors(context, layer);
  const NodeId key = g.Rope(x.key, positions, factors, model.rope);
  const NodeId key_pages = context.StoreKeys(layer, key);
  const NodeId value_pages = context.StoreValues(layer, x.value);
  if (store_only) {
    // Of a model of one layer nothing else reads it, and the inputs of a graph have no gaps.
    context.Input(ModelInput::kSequences);
    return kNoNode;
  }
  const NodeId query = g.Rope(x.query, positions, factors, model.rope);
  PagedAttentionAttributes attributes;
  attributes.scale = model.attention_scale;
  const NodeId table = context.PageTable();
  const NodeId sequences = context.Input(ModelInput::kSequences);
  const NodeId heads = g.PagedAttention(query, key_pages, value_pages, table, sequences, positions,
                                        kNoNode, kNoNode, attributes);
  const NodeId joined =
      g.Reshape(heads, {model.value_head * model.n_head[layer], context.tokens(), 1, 1});
  return context.LayerLinear(layer, "attn_output", joined);
}

absl::Status DeclareAttention(const Hyperparameters& model, int32_t layer, WeightTable& weights) {
  const std::string blk = absl::StrCat("blk.", layer, ".");
  const int64_t queries = model.key_head * model.n_head[layer];
  const int64_t keys = model.key_head * model.n_head_kv[layer];
  const int64_t values = model.value_head * model.n_head_kv[layer];
  const int64_t outputs = model.value_head * model.n_head[layer];
  const auto pair = [&](const char* name, WeightRole role, int64_t rows) -> absl::Status {
    RETURN_IF_ERROR(
        weights.Require(blk + name + ".weight", role, layer, {model.n_embd, rows, 1, 1}));
    return weights.Allow(blk + name + ".bias", role, layer, {rows, 1, 1, 1}, true);
  };
  if (weights.file().FindTensor(blk + "attn_qkv.weight") != nullptr) {
    RETURN_IF_ERROR(pair("attn_qkv", WeightRole::kQueryKeyValue, queries + keys + values));
  } else {
    RETURN_IF_ERROR(pair("attn_q", WeightRole::kQuery, queries));
    RETURN_IF_ERROR(pair("attn_k", WeightRole::kKey, keys));
    RETURN_IF_ERROR(pair("attn_v", WeightRole::kValue, values));
  }
  RETURN_IF_ERROR(weights.Require(blk + "attn_output.weight", WeightRole::kAttentionOutput, layer,
                                  {outputs, model.n_embd, 1, 1}));
  return weights.Allow(blk + "attn_output.bias", WeightRole::kAttentionOutput, layer,
                       {model.n_embd, 1, 1, 1}, true);
}

}  // namespace weft
