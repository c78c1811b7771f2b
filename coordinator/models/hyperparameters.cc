#include "coordinator/models/hyperparameters.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/models/rope_parameters.h"

namespace weft {
namespace {

absl::Status CheckRange(const std::string& key, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key '", key, "' is ", value, ", want ", low, " to ", high));
}

absl::StatusOr<int64_t> Required(const GgufMetadata& metadata, const std::string& key, int64_t low,
                                 int64_t high) {
  ASSIGN_OR_RETURN(const int64_t value, metadata.Integer(key));
  RETURN_IF_ERROR(CheckRange(key, value, low, high));
  return value;
}

absl::StatusOr<int64_t> Optional(const GgufMetadata& metadata, const std::string& key,
                                 int64_t otherwise, int64_t low, int64_t high) {
  ASSIGN_OR_RETURN(const int64_t value, metadata.IntegerOr(key, otherwise));
  RETURN_IF_ERROR(CheckRange(key, value, low, high));
  return value;
}

// A scalar for all layers, or an array with a value per layer.
absl::StatusOr<std::vector<int64_t>> PerLayer(const GgufMetadata& metadata, const std::string& key,
                                              int64_t n_layer, int64_t low, int64_t high) {
  const GgufValue* value = metadata.Find(key);
  std::vector<int64_t> values;
  if (value != nullptr && std::holds_alternative<GgufArray>(*value)) {
    ASSIGN_OR_RETURN(values, metadata.Integers(key));
    if (static_cast<int64_t>(values.size()) < n_layer) {
      return absl::InvalidArgumentError(
          absl::StrCat("key '", key, "' has ", values.size(), " values for ", n_layer, " layers"));
    }
    values.resize(n_layer);
  } else {
    ASSIGN_OR_RETURN(const int64_t scalar, metadata.Integer(key));
    values.assign(n_layer, scalar);
  }
  for (const int64_t v : values) RETURN_IF_ERROR(CheckRange(key, v, low, high));
  return values;
}

absl::Status ReadHeads(const GgufMetadata& metadata, const std::string& prefix,
                       Hyperparameters& model) {
  ASSIGN_OR_RETURN(model.n_head, PerLayer(metadata, prefix + "attention.head_count", model.n_layer,
                                          1, kMaxDimension));
  model.n_head_kv = model.n_head;
  const std::string kv_key = prefix + "attention.head_count_kv";
  if (metadata.Has(kv_key)) {
    ASSIGN_OR_RETURN(model.n_head_kv, PerLayer(metadata, kv_key, model.n_layer, 1, kMaxDimension));
  }
  for (int64_t layer = 0; layer < model.n_layer; ++layer) {
    if (model.n_head[layer] % model.n_head_kv[layer] != 0) {
      return absl::InvalidArgumentError(absl::StrCat("key '", kv_key, "': ", model.n_head_kv[layer],
                                                     " KV heads do not divide ",
                                                     model.n_head[layer], " heads"));
    }
  }
  const int64_t even = model.n_embd / model.n_head[0];
  ASSIGN_OR_RETURN(model.key_head,
                   Optional(metadata, prefix + "attention.key_length", even, 1, kMaxDimension));
  ASSIGN_OR_RETURN(model.value_head,
                   Optional(metadata, prefix + "attention.value_length", even, 1, kMaxDimension));
  ASSIGN_OR_RETURN(const double scale, metadata.FloatOr(prefix + "attention.scale", 0));
  if (!std::isfinite(scale)) {
    return absl::InvalidArgumentError(absl::StrCat("key '", prefix, "attention.scale' is ", scale));
  }
  model.attention_scale =
      static_cast<float>(scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(model.key_head)));
  return absl::OkStatus();
}

absl::StatusOr<ExpertGating> ReadGating(const GgufMetadata& metadata, const std::string& key) {
  ASSIGN_OR_RETURN(const int64_t gating, metadata.IntegerOr(key, 0));
  switch (gating) {
    case 0:
    case 1:
      return ExpertGating::kSoftmax;
    case 2:
      return ExpertGating::kSigmoid;
    case 3:
      return ExpertGating::kSoftmaxOfSelected;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("key '", key, "' is ", gating, ", want 0 to 3"));
  }
}

absl::Status ReadExperts(const GgufMetadata& metadata, const std::string& prefix,
                         Hyperparameters& model) {
  ASSIGN_OR_RETURN(model.n_expert, Optional(metadata, prefix + "expert_count", 0, 0, kMaxExperts));
  if (model.n_expert == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(model.n_expert_used,
                   Required(metadata, prefix + "expert_used_count", 1, model.n_expert));
  ASSIGN_OR_RETURN(model.n_ff_expert,
                   Optional(metadata, prefix + "expert_feed_forward_length",
                            model.n_ff.empty() ? 0 : model.n_ff[0], 1, kMaxDimension));
  ASSIGN_OR_RETURN(model.expert_gating, ReadGating(metadata, prefix + "expert_gating_func"));
  ASSIGN_OR_RETURN(model.expert_weights_norm,
                   metadata.BoolOr(prefix + "expert_weights_norm", false));
  ASSIGN_OR_RETURN(const double scale, metadata.FloatOr(prefix + "expert_weights_scale", 1));
  if (!std::isfinite(scale)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", prefix, "expert_weights_scale' is ", scale));
  }
  model.expert_weights_scale = scale == 0 ? 1.0f : static_cast<float>(scale);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokenCount(const GgufMetadata& metadata) {
  if (!metadata.Has("tokenizer.ggml.tokens")) return 0;
  ASSIGN_OR_RETURN(const auto texts, metadata.Strings("tokenizer.ggml.tokens"));
  return static_cast<int64_t>(texts.size());
}

}  // namespace

absl::StatusOr<int64_t> VocabularySize(const GgufMetadata& metadata, const std::string& key,
                                       int64_t embedding_rows) {
  ASSIGN_OR_RETURN(const int64_t tokens, TokenCount(metadata));
  ASSIGN_OR_RETURN(const int64_t stated, Optional(metadata, key, 0, 0, kMaxDimension));
  const bool settled_by_tensor = stated == 0 ? tokens == 0 : tokens == embedding_rows;
  if (settled_by_tensor && embedding_rows > 0) return embedding_rows;
  const int64_t size = stated > 0 ? stated : tokens;
  RETURN_IF_ERROR(CheckRange(key, size, 1, kMaxDimension));
  return size;
}

absl::StatusOr<Pooling> ReadPooling(const GgufMetadata& metadata, const std::string& key) {
  if (!metadata.Has(key)) return Pooling::kMean;
  ASSIGN_OR_RETURN(const int64_t type, metadata.Integer(key));
  switch (type) {
    case 0:  // nothing said; what clients want is one vector
    case 1:
      return Pooling::kMean;
    case 2:
      return Pooling::kFirst;
    case 3:
      return Pooling::kLast;
    default:
      return Pooling::kNone;
  }
}

absl::StatusOr<Hyperparameters> ReadCommonHyperparameters(const GgufMetadata& metadata) {
  Hyperparameters model;
  ASSIGN_OR_RETURN(const std::string_view architecture, metadata.String("general.architecture"));
  model.architecture = std::string(architecture);
  ASSIGN_OR_RETURN(model.name, metadata.StringOr("general.name", ""));
  const std::string prefix = model.architecture + ".";
  ASSIGN_OR_RETURN(model.n_layer, Required(metadata, prefix + "block_count", 1, kMaxLayers));
  ASSIGN_OR_RETURN(model.n_embd, Required(metadata, prefix + "embedding_length", 1, kMaxDimension));
  ASSIGN_OR_RETURN(model.context_length,
                   Required(metadata, prefix + "context_length", 1, kMaxContext));
  ASSIGN_OR_RETURN(model.pooling, ReadPooling(metadata, prefix + "pooling_type"));
  const std::string ff_key = prefix + "feed_forward_length";
  if (metadata.Has(ff_key)) {
    ASSIGN_OR_RETURN(model.n_ff, PerLayer(metadata, ff_key, model.n_layer, 0, kMaxDimension));
  } else {
    model.n_ff.assign(model.n_layer, 0);
  }
  RETURN_IF_ERROR(ReadHeads(metadata, prefix, model));
  const std::string epsilon_key = prefix + "attention.layer_norm_rms_epsilon";
  ASSIGN_OR_RETURN(const double epsilon, metadata.Float(epsilon_key));
  if (!std::isfinite(epsilon) || epsilon < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", epsilon_key, "' is ", epsilon, ", want >= 0"));
  }
  model.rms_epsilon = static_cast<float>(epsilon);
  RETURN_IF_ERROR(ReadExperts(metadata, prefix, model));
  RETURN_IF_ERROR(ReadRopeParameters(metadata, model));
  return model;
}

}  // namespace weft
