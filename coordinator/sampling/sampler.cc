#include "coordinator/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/candidate_layout.h"

namespace weft {
namespace {

constexpr const char* kHint = "; the model's data may be damaged: weft inspect --check tells";
// Candidates of a step: enough for the usual top-k, and for top-p without it; and the most that
// are worth their bytes.
constexpr int64_t kFewCandidates = 64;
constexpr int64_t kManyCandidates = 256;
constexpr int64_t kMostCandidates = 4096;

}  // namespace

bool ChangesLogits(const SamplerOptions& options) {
  return options.penalty_window != 0 &&
         (options.repeat_penalty != 1 || options.frequency_penalty != 0 ||
          options.presence_penalty != 0);
}

absl::Status CheckSamplerOptions(const SamplerOptions& options) {
  const auto bad = [](const char* name, double value, const char* want) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", want ", want));
  };
  if (!std::isfinite(options.temperature))
    return bad("temperature", options.temperature, "a number");
  if (!std::isfinite(options.top_p)) return bad("top-p", options.top_p, "a number");
  if (!(options.min_p <= 1)) return bad("min-p", options.min_p, "at most 1");
  if (!std::isfinite(options.repeat_penalty) || options.repeat_penalty <= 0) {
    return bad("repeat-penalty", options.repeat_penalty, "> 0");
  }
  if (!std::isfinite(options.frequency_penalty)) {
    return bad("frequency-penalty", options.frequency_penalty, "a number");
  }
  if (!std::isfinite(options.presence_penalty)) {
    return bad("presence-penalty", options.presence_penalty, "a number");
  }
  if (options.penalty_window < -1) return bad("repeat-last-n", options.penalty_window, ">= -1");
  return absl::OkStatus();
}

int32_t ArgMax(absl::Span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void ApplyPenalties(const SamplerOptions& options, const std::deque<int32_t>& recent,
                    std::vector<Candidate>& candidates) {
  absl::flat_hash_map<int32_t, int32_t> counts;
  for (const int32_t token : recent) ++counts[token];
  for (Candidate& candidate : candidates) {
    const auto found = counts.find(candidate.id);
    if (found == counts.end()) continue;
    candidate.logit = candidate.logit <= 0 ? candidate.logit * options.repeat_penalty
                                           : candidate.logit / options.repeat_penalty;
    candidate.logit -=
        static_cast<float>(found->second) * options.frequency_penalty + options.presence_penalty;
  }
}

void KeepTopK(int32_t k, std::vector<Candidate>& candidates) {
  const size_t keep = k <= 0 ? candidates.size() : std::min<size_t>(k, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + keep, candidates.end(), Before);
  candidates.resize(keep);
}

void KeepTopP(float p, std::vector<Candidate>& candidates) {
  if (p >= 1 || candidates.empty()) return;
  double total = 0;
  for (const Candidate& c : candidates) total += std::exp(double{c.logit} - candidates[0].logit);
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += std::exp(double{candidates[i].logit} - candidates[0].logit);
    if (sum >= p * total) {
      candidates.resize(i + 1);
      return;
    }
  }
}

float LeastOfMinP(float p, float maximum) { return maximum + std::log(p); }

void KeepMinP(float p, std::vector<Candidate>& candidates) {
  if (p <= 0 || candidates.empty()) return;
  const float least = LeastOfMinP(p, candidates[0].logit);
  size_t keep = 1;
  while (keep < candidates.size() && candidates[keep].logit >= least) ++keep;
  candidates.resize(keep);
}

size_t DrawFromSoftmax(absl::Span<const Candidate> candidates, double uniform) {
  float maximum = candidates[0].logit;
  for (const Candidate& c : candidates) maximum = std::max(maximum, c.logit);
  double total = 0;
  for (const Candidate& c : candidates) total += std::exp(double{c.logit} - maximum);
  double sum = 0;
  size_t last = 0;  // the last one that can be drawn at all, for a uniform that rounds to the total
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double weight = std::exp(double{candidates[i].logit} - maximum);
    if (weight > 0) last = i;
    sum += weight;
    if (weight > 0 && sum >= uniform * total) return i;
  }
  return last;
}

absl::Status NotANumber(int64_t token) {
  return absl::InternalError(absl::StrCat("logit of token ", token, " is not a number", kHint));
}

absl::Status NothingFinite() {
  return absl::InternalError(absl::StrCat("no logit is finite", kHint));
}

int64_t CandidatesFor(const SamplerOptions& options, int64_t n_vocab) {
  if (n_vocab > kMostChangedIds) return 0;  // beyond what steps offer
  const bool by_mass = options.temperature > 0 && options.top_k <= 0;
  const int64_t want = options.temperature <= 0 ? 1 : std::max<int64_t>(options.top_k, 1);
  int64_t count = by_mass ? kManyCandidates : kFewCandidates;
  while (count < want && count < kMostCandidates) count *= 2;
  return std::min(count, n_vocab);
}

int64_t MostChangedIds(const SamplerOptions& options, int64_t context, int64_t n_vocab) {
  if (!ChangesLogits(options)) return 0;
  const int64_t window = options.penalty_window < 0 ? context : options.penalty_window;
  return std::min({window, context, n_vocab});
}

absl::Status CheckLogits(absl::Span<const float> logits) {
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return NotANumber(static_cast<int64_t>(i));
    any = any || std::isfinite(logits[i]);
  }
  return any ? absl::OkStatus() : NothingFinite();
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits) {
  RETURN_IF_ERROR(CheckLogits(logits));
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates.push_back({static_cast<int32_t>(i), logits[i]});
  }
  const double uniform = random_.Uniform();
  ApplyPenalties(options_, recent_, candidates);
  if (options_.temperature <= 0) {
    return std::min_element(candidates.begin(), candidates.end(), Before)->id;
  }
  KeepTopK(options_.top_k, candidates);
  KeepTopP(options_.top_p, candidates);
  KeepMinP(options_.min_p, candidates);
  for (Candidate& candidate : candidates) candidate.logit /= options_.temperature;
  return candidates[DrawFromSoftmax(candidates, uniform)].id;
}

void Sampler::Accept(int32_t token) {
  if (options_.penalty_window == 0) return;
  recent_.push_back(token);
  if (options_.penalty_window > 0 &&
      recent_.size() > static_cast<size_t>(options_.penalty_window)) {
    recent_.pop_front();
  }
}

}  // namespace weft
