#include "coordinator/sampling/sampler_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/candidate_layout.h"

namespace weft {
namespace {

// Candidates of a step: enough for the usual top-k, and for top-p without it; and the most that
// are worth their bytes.
constexpr int64_t kFewCandidates = 64;
constexpr int64_t kManyCandidates = 256;
constexpr int64_t kMostCandidates = 4096;
// Changes of logits stay below this, so that sums of them are numbers.
constexpr double kMostChange = 1e9;

struct Bounds {
  const char* name;
  double value;
  double least;
  double most;
  const char* want;
};

constexpr double kAny = std::numeric_limits<float>::max();

std::vector<Bounds> BoundsOf(const SamplerOptions& o) {
  constexpr const char* kNumber = "a number";
  constexpr const char* kSmall = "a number of at most 1e9";
  return {
      {"temp", o.temperature, -kAny, kAny, kNumber},
      {"top-p", o.top_p, -kAny, kAny, kNumber},
      {"min-p", o.min_p, -kAny, 1, "at most 1"},
      {"repeat-penalty", o.repeat_penalty, 1e-9, kMostChange, "> 0"},
      {"frequency-penalty", o.frequency_penalty, -kMostChange, kMostChange, kSmall},
      {"presence-penalty", o.presence_penalty, -kMostChange, kMostChange, kSmall},
      {"repeat-last-n", static_cast<double>(o.penalty_window), -1, kAny, ">= -1"},
      {"typical", o.typical_p, -kAny, kAny, kNumber},
      {"top-nsigma", o.top_n_sigma, -kAny, kAny, kNumber},
      {"xtc-probability", o.xtc_probability, -kAny, kAny, kNumber},
      {"xtc-threshold", o.xtc_threshold, -kAny, kAny, kNumber},
      {"dynatemp-range", o.dynatemp_range, -kAny, kAny, kNumber},
      {"dynatemp-exp", o.dynatemp_exponent, 0, kAny, ">= 0"},
      {"dry-multiplier", o.dry.multiplier, 0, kMostChange, ">= 0"},
      {"dry-base", o.dry.base, 0, kMostChange, ">= 0"},
      {"dry-allowed-length", static_cast<double>(o.dry.allowed_length), 0, kAny, ">= 0"},
      {"dry-penalty-last-n", static_cast<double>(o.dry.window), -1, kAny, ">= -1"},
      {"mirostat-ent", o.mirostat_tau, 0, kMostChange, ">= 0"},
      {"mirostat-lr", o.mirostat_eta, 0, kMostChange, ">= 0"},
      {"min-keep", static_cast<double>(o.min_keep), 0, kAny, ">= 0"},
  };
}

// The end of all chains but greedy ones.
void AddTemperature(const SamplerOptions& o, std::vector<std::string>& stages) {
  if (o.temperature <= 0) {
    stages.emplace_back("greedy");
    return;
  }
  std::string text = absl::StrCat("temperature ", o.temperature);
  if (o.dynatemp_range > 0 && o.mirostat == Mirostat::kOff) {
    absl::StrAppend(&text, " +- ", o.dynatemp_range, " by entropy^", o.dynatemp_exponent);
  }
  stages.push_back(text);
}

void AddTruncation(const SamplerOptions& o, std::vector<std::string>& stages) {
  const auto add = [&](bool on, const char* name, auto value) {
    if (on) stages.push_back(absl::StrCat(name, " ", value));
  };
  add(o.top_n_sigma > 0, "top-n-sigma", o.top_n_sigma);
  add(o.top_k > 0, "top-k", o.top_k);
  add(o.typical_p < 1, "typical", o.typical_p);
  add(o.top_p < 1, "top-p", o.top_p);
  add(o.min_p > 0, "min-p", o.min_p);
  if (o.xtc_probability > 0) {
    stages.push_back(absl::StrCat("xtc ", o.xtc_probability, " (threshold ", o.xtc_threshold, ")"));
  }
}

void AddPenalties(const SamplerOptions& o, std::vector<std::string>& stages) {
  if (PenaltiesChangeLogits(o)) {
    stages.push_back(absl::StrCat("penalties (last ", o.penalty_window, ": repeat ",
                                  o.repeat_penalty, ", frequency ", o.frequency_penalty,
                                  ", presence ", o.presence_penalty, ")"));
  }
  if (DryChangesLogits(o)) {
    stages.push_back(absl::StrCat("dry (last ", o.dry.window, ": ", o.dry.multiplier, " * ",
                                  o.dry.base, "^(n - ", o.dry.allowed_length, "))"));
  }
}

// Whether a chain needs to know of tokens that no truncation before it took out.
bool NeedsAllLogits(const SamplerOptions& o) {
  if (o.mirostat != Mirostat::kOff) return o.temperature > 0;
  if (o.temperature <= 0 && o.typical_p >= 1 && o.xtc_probability <= 0) return false;
  return o.top_n_sigma > 0 || (o.typical_p < 1 && o.top_k <= 0);
}

}  // namespace

bool PenaltiesChangeLogits(const SamplerOptions& options) {
  return options.mirostat == Mirostat::kOff && options.penalty_window != 0 &&
         (options.repeat_penalty != 1 || options.frequency_penalty != 0 ||
          options.presence_penalty != 0);
}

bool DryChangesLogits(const SamplerOptions& options) {
  return options.mirostat == Mirostat::kOff && options.dry.multiplier != 0 &&
         options.dry.window != 0 && options.dry.base >= 1;
}

absl::Status CheckSamplerOptions(const SamplerOptions& options) {
  for (const Bounds& bounds : BoundsOf(options)) {
    if (bounds.value >= bounds.least && bounds.value <= bounds.most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(bounds.name, " is ", bounds.value, ", want ", bounds.want));
  }
  for (const TokenBias& bias : options.logit_bias) {
    const bool banned = std::isinf(bias.bias) && bias.bias < 0;
    if (bias.id >= 0 && (banned || std::abs(bias.bias) <= kMostChange)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("logit-bias of token ", bias.id, " is ", bias.bias,
                     ", want a token and a number of at most 1e9 or -inf"));
  }
  return absl::OkStatus();
}

std::string SamplerChainText(const SamplerOptions& options) {
  std::vector<std::string> stages;
  if (!options.logit_bias.empty()) {
    stages.push_back(absl::StrCat("logit bias (", options.logit_bias.size(), ")"));
  }
  AddPenalties(options, stages);
  if (options.mirostat == Mirostat::kOff) AddTruncation(options, stages);
  AddTemperature(options, stages);
  if (options.mirostat != Mirostat::kOff && options.temperature > 0) {
    stages.push_back(absl::StrCat("mirostat ", static_cast<int>(options.mirostat), " (tau ",
                                  options.mirostat_tau, ", eta ", options.mirostat_eta, ")"));
  }
  if (options.temperature > 0) stages.push_back(absl::StrCat("draw (seed ", options.seed, ")"));
  return absl::StrJoin(stages, " -> ");
}

int64_t CandidatesFor(const SamplerOptions& options, int64_t n_vocab) {
  if (n_vocab > kMostChangedIds) return 0;  // beyond what steps offer
  if (NeedsAllLogits(options)) return 0;
  const bool by_mass = options.temperature > 0 && options.top_k <= 0;
  const int64_t want = options.temperature <= 0 ? 1 : std::max<int64_t>(options.top_k, 1);
  int64_t count = by_mass ? kManyCandidates : kFewCandidates;
  while (count < want && count < kMostCandidates) count *= 2;
  return std::min(count, n_vocab);
}

int64_t MostChangedIds(const SamplerOptions& options, int64_t context, int64_t n_vocab) {
  auto most = static_cast<int64_t>(options.logit_bias.size());
  if (PenaltiesChangeLogits(options)) {
    most +=
        options.penalty_window < 0 ? context : std::min<int64_t>(options.penalty_window, context);
  }
  if (DryChangesLogits(options)) most += std::min(kMostDryIds, context);
  return std::min(most, n_vocab);
}

}  // namespace weft
