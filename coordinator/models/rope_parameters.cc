#include "coordinator/models/rope_parameters.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::StatusOr<RopeScaling> ReadScaling(const GgufMetadata& metadata, const std::string& prefix) {
  const std::string key = prefix + "rope.scaling.type";
  ASSIGN_OR_RETURN(const std::string type, metadata.StringOr(key, "linear"));
  if (type == "none") return RopeScaling::kNone;
  if (type == "linear") return RopeScaling::kLinear;
  if (type == "yarn") return RopeScaling::kYarn;
  if (type == "longrope") return RopeScaling::kLongRope;
  return absl::InvalidArgumentError(absl::StrCat("key '", key, "': unknown scaling type '",
                                                 type.substr(0, 32),
                                                 "'; known are none, linear, yarn and longrope"));
}

// 1 / factor, by whichever of the two keys is there.
absl::StatusOr<double> ReadFrequencyScale(const GgufMetadata& metadata, const std::string& prefix) {
  const bool by_factor = metadata.Has(prefix + "rope.scaling.factor");
  const std::string key = prefix + (by_factor ? "rope.scaling.factor" : "rope.scale_linear");
  ASSIGN_OR_RETURN(const double factor, metadata.FloatOr(key, 0));
  if (factor == 0) return 1.0;
  if (!std::isfinite(static_cast<float>(1.0 / factor)) || !std::isfinite(factor) || factor < 0) {
    return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is ", factor, ", want > 0"));
  }
  return 1.0 / factor;
}

// A number that is finite as float and, where asked, above 0.
absl::StatusOr<double> FiniteOr(const GgufMetadata& metadata, const std::string& key,
                                double otherwise, bool positive) {
  ASSIGN_OR_RETURN(const double value, metadata.FloatOr(key, otherwise));
  if (!std::isfinite(static_cast<float>(value)) || (positive && value <= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("key '", key, "' is ", value, ", want ",
                                                   positive ? "> 0" : "a finite number"));
  }
  return value;
}

// The magnitude factor such that plain YaRN scales by 1 + 0.1 ln(factor) once: the op multiplies by
// that itself.
double YarnAttentionFactor(double factor, double log_multiplier) {
  const auto magnitude = [factor](double m) {
    return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1.0;
  };
  const double wanted =
      log_multiplier != 0 ? magnitude(1) / magnitude(log_multiplier) : magnitude(1);
  return wanted / (1.0 + 0.1 * std::log(factor));
}

}  // namespace

absl::Status ReadRopeParameters(const GgufMetadata& metadata, Hyperparameters& model) {
  const std::string prefix = model.architecture + ".";
  RopeAttributes& rope = model.rope;
  ASSIGN_OR_RETURN(const int64_t dimensions,
                   metadata.IntegerOr(prefix + "rope.dimension_count", model.key_head));
  if (dimensions < 2 || dimensions > model.key_head || dimensions % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("key '", prefix, "rope.dimension_count' is ",
                                                   dimensions, ", want an even number up to ",
                                                   model.key_head));
  }
  rope.dimensions = static_cast<int32_t>(dimensions);
  ASSIGN_OR_RETURN(const double base, metadata.FloatOr(prefix + "rope.freq_base", 10000.0));
  if (!std::isfinite(base) || base <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", prefix, "rope.freq_base' is ", base, ", want > 0"));
  }
  rope.base = static_cast<float>(base);
  ASSIGN_OR_RETURN(model.rope_scaling, ReadScaling(metadata, prefix));
  double scale = 1;
  if (model.rope_scaling != RopeScaling::kNone) {
    ASSIGN_OR_RETURN(scale, ReadFrequencyScale(metadata, prefix));
  }
  rope.frequency_scale = static_cast<float>(scale);
  ASSIGN_OR_RETURN(
      rope.original_context,
      metadata.IntegerOr(prefix + "rope.scaling.original_context_length", model.context_length));
  if (rope.original_context < 1 || rope.original_context > kMaxContext) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", prefix, "rope.scaling.original_context_length' is ",
                     rope.original_context, ", want 1 to ", kMaxContext));
  }
  const bool yarn = model.rope_scaling == RopeScaling::kYarn;
  const std::string scaling = prefix + "rope.scaling.";
  const double unset = yarn ? 1.0 : 0.0;
  ASSIGN_OR_RETURN(const double mix, FiniteOr(metadata, scaling + "yarn_ext_factor", unset, false));
  rope.extrapolation = static_cast<float>(mix < 0 ? unset : mix);
  ASSIGN_OR_RETURN(const double fast, FiniteOr(metadata, scaling + "yarn_beta_fast", 32.0, true));
  ASSIGN_OR_RETURN(const double slow, FiniteOr(metadata, scaling + "yarn_beta_slow", 1.0, true));
  rope.beta_fast = static_cast<float>(fast);
  rope.beta_slow = static_cast<float>(slow);
  ASSIGN_OR_RETURN(const double log_multiplier,
                   FiniteOr(metadata, scaling + "yarn_log_multiplier", 0.0, false));
  ASSIGN_OR_RETURN(const double attention_factor,
                   FiniteOr(metadata, scaling + "attn_factor", 1.0, false));
  double factor = attention_factor;
  // The stored multiplier is a tenth of the one in the formula.
  if (rope.extrapolation != 0) factor *= YarnAttentionFactor(1.0 / scale, log_multiplier / 0.1);
  if (!std::isfinite(factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys '", scaling, "*': the magnitude of the rotation is ", factor));
  }
  rope.attention_factor = static_cast<float>(factor);
  return absl::OkStatus();
}

}  // namespace weft
