#include "coordinator/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

constexpr const char* kHint = "; the model's data may be damaged: weft inspect --check tells";
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// So that the draws of XTC and those of tokens have nothing to do with each other.
constexpr uint64_t kXtcSeed = 0xD1B54A32D192ED03u;

absl::Status NoTokenLeft() {
  return absl::FailedPreconditionError(
      "no token is left to choose from after the grammar and logit-bias");
}

float Maximum(absl::Span<const Candidate> candidates) {
  float maximum = -kInfinity;
  for (const Candidate& c : candidates) maximum = std::max(maximum, c.logit);
  return maximum;
}

// A logit of +infinity is a certainty: the others are out.
void TakeCertainties(std::vector<Candidate>& candidates) {
  if (Maximum(candidates) < kInfinity) return;
  for (Candidate& c : candidates) c.logit = c.logit == kInfinity ? 0 : -kInfinity;
}

// How many of the last tokens the stages look at; negative: all.
int64_t WindowOf(const SamplerOptions& options) {
  const int64_t penalties = PenaltiesChangeLogits(options) ? options.penalty_window : 0;
  const int64_t dry = DryChangesLogits(options) ? options.dry.window : 0;
  return penalties < 0 || dry < 0 ? -1 : std::max(penalties, dry);
}

}  // namespace

int32_t ArgMax(absl::Span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

absl::Status NotANumber(int64_t token) {
  return absl::InternalError(absl::StrCat("logit of token ", token, " is not a number", kHint));
}

absl::Status NothingFinite() {
  return absl::InternalError(absl::StrCat("no logit is finite", kHint));
}

absl::Status CheckLogits(absl::Span<const float> logits) {
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return NotANumber(static_cast<int64_t>(i));
    any = any || std::isfinite(logits[i]);
  }
  return any ? absl::OkStatus() : NothingFinite();
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options),
      random_(options.seed),
      xtc_random_(options.seed ^ kXtcSeed),
      mu_(2 * options.mirostat_tau),
      window_(WindowOf(options)) {}

absl::Span<const int32_t> Sampler::Recent(int32_t window) const {
  const absl::Span<const int32_t> all = history_;
  return window < 0 || all.size() <= static_cast<size_t>(window)
             ? all
             : all.last(static_cast<size_t>(window));
}

const std::vector<DryPenalty>& Sampler::DryPenalties() const {
  if (!dry_known_) {
    dry_ = FindDryPenalties(options_.dry, options_.dry_breakers.get(), history_);
    dry_known_ = true;
  }
  return dry_;
}

void Sampler::ChangeLogits(std::vector<Candidate>& candidates) const {
  ApplyBias(options_.logit_bias, candidates);
  if (PenaltiesChangeLogits(options_)) {
    ApplyPenalties(options_, Recent(options_.penalty_window), candidates);
  }
  if (DryChangesLogits(options_)) ApplyDry(DryPenalties(), candidates);
}

std::vector<int32_t> Sampler::ChangedIds() const {
  std::vector<int32_t> ids;
  ids.reserve(options_.logit_bias.size());
  for (const TokenBias& bias : options_.logit_bias) ids.push_back(bias.id);
  if (PenaltiesChangeLogits(options_)) {
    const absl::Span<const int32_t> recent = Recent(options_.penalty_window);
    ids.insert(ids.end(), recent.begin(), recent.end());
  }
  if (DryChangesLogits(options_)) {
    const std::vector<DryPenalty>& dry = DryPenalties();
    const size_t count = std::min<size_t>(dry.size(), kMostDryIds);
    for (size_t i = 0; i < count; ++i) ids.push_back(dry[i].id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Sampler::Truncate(CandidateList& list, double xtc_uniform) const {
  const auto min_keep = static_cast<size_t>(options_.min_keep);
  if (options_.top_n_sigma > 0) {
    if (!list.complete()) return false;
    CutTopNSigma(options_.top_n_sigma, list.list());
  }
  list.TopK(options_.top_k);
  if (options_.typical_p < 1) {
    if (!list.complete()) return false;
    KeepTypical(options_.typical_p, min_keep, list.list());
    std::sort(list.list().begin(), list.list().end(), Before);
  }
  if (!list.TopP(options_.top_p, min_keep) || !list.MinP(options_.min_p, min_keep)) return false;
  if (!list.complete()) return false;
  if (xtc_uniform < options_.xtc_probability) {
    ExcludeTopChoices(options_.xtc_threshold, min_keep, list.list());
  }
  return true;
}

std::optional<Candidate> Sampler::ChooseByMirostat(CandidateList& list, double uniform,
                                                   float& mu) const {
  if (!list.complete()) return std::nullopt;
  std::vector<Candidate>& candidates = list.list();
  KeepTopK(0, candidates);
  ApplyTemperature(options_.temperature, candidates);
  candidates.resize(options_.mirostat == Mirostat::kVersion1 ? CountOfMirostat1(mu, candidates)
                                                             : CountOfMirostat2(mu, candidates));
  const size_t chosen = DrawFromSoftmax(candidates, uniform);
  const auto [weights, total] = SoftmaxOf(candidates);
  const double surprise = -std::log2(weights[chosen] / total);
  mu -= static_cast<float>(options_.mirostat_eta * (surprise - options_.mirostat_tau));
  return candidates[chosen];
}

std::optional<Candidate> Sampler::Choose(CandidateList& list, const Draws& draws, float& mu) const {
  const bool greedy = options_.temperature <= 0;
  // Only these two ever drop the first.
  const bool keeps_first = options_.typical_p >= 1 && options_.xtc_probability <= 0;
  if (greedy && (keeps_first || options_.mirostat != Mirostat::kOff)) {
    const std::vector<Candidate>& all = list.list();
    const auto first = std::min_element(all.begin(), all.end(), Before);
    return first == all.end() ? std::nullopt : std::optional<Candidate>(*first);
  }
  if (options_.mirostat != Mirostat::kOff) return ChooseByMirostat(list, draws.token, mu);
  if (!Truncate(list, draws.xtc)) return std::nullopt;
  std::vector<Candidate>& candidates = list.list();
  const float temperature = greedy
                                ? 0
                                : DynamicTemperature(options_.temperature, options_.dynatemp_range,
                                                     options_.dynatemp_exponent, candidates);
  if (temperature <= 0) return candidates[0];
  ApplyTemperature(temperature, candidates);
  return candidates[DrawFromSoftmax(candidates, draws.token)];
}

std::optional<int32_t> Sampler::Run(CandidateList& list) {
  Random random = random_;
  Random xtc_random = xtc_random_;
  float mu = mu_;
  const Draws draws = {random.Uniform(), xtc_random.Uniform()};
  const std::optional<Candidate> chosen = Choose(list, draws, mu);
  if (!chosen) return std::nullopt;
  random_ = random;
  xtc_random_ = xtc_random;
  mu_ = mu;
  return chosen->id;
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits) {
  RETURN_IF_ERROR(CheckLogits(logits));
  const auto size = static_cast<int64_t>(logits.size());
  std::optional<TokenMask> mask;
  if (filter_ != nullptr) {
    ASSIGN_OR_RETURN(mask, filter_->Mask(size));
  }
  std::vector<Candidate> candidates;
  candidates.reserve(mask ? 0 : logits.size());
  for (int64_t i = 0; i < size; ++i) {
    if (!mask || mask->Contains(i)) candidates.push_back({static_cast<int32_t>(i), logits[i]});
  }
  ChangeLogits(candidates);
  if (Maximum(candidates) == -kInfinity) return NoTokenLeft();
  TakeCertainties(candidates);
  CandidateList list(std::move(candidates));
  const std::optional<int32_t> token = Run(list);
  // A complete list tells.
  if (!token) return absl::InternalError("the sampler did not choose from all logits");
  return *token;
}

absl::StatusOr<std::optional<int32_t>> Sampler::SampleFrom(const CandidateRow& row) {
  if (row.nan_count > 0) return NotANumber(row.first_nan);
  const float maximum = std::max({Maximum(row.best), Maximum(row.changed), row.rest_max});
  if (maximum == -kInfinity) return NothingFinite();
  if (maximum == kInfinity) return std::nullopt;
  // Every id that changes is there.
  for (const int32_t id : ChangedIds()) {
    const auto at = std::lower_bound(row.changed.begin(), row.changed.end(), id,
                                     [](const Candidate& c, int32_t x) { return c.id < x; });
    const bool here = at != row.changed.end() && at->id == id;
    if (!here && id >= row.first_id && id < row.first_id + row.ids) return std::nullopt;
  }
  if (DryChangesLogits(options_) && DryPenalties().size() > kMostDryIds) return std::nullopt;
  std::vector<Candidate> candidates = row.changed;
  ChangeLogits(candidates);
  candidates.insert(candidates.begin(), row.best.begin(), row.best.end());
  if (filter_ != nullptr) {
    std::vector<Candidate> allowed;
    for (const Candidate& candidate : candidates) {
      ASSIGN_OR_RETURN(const bool allows, filter_->Allows(candidate.id));
      if (allows) allowed.push_back(candidate);
    }
    candidates = std::move(allowed);
  }
  const float left = Maximum(candidates);
  if (left == kInfinity || left == -kInfinity) return std::nullopt;
  CandidateList list = CandidateList::OfRow(row, std::move(candidates), filter_ != nullptr);
  return Run(list);
}

void Sampler::Accept(int32_t token) {
  if (window_ == 0) return;
  history_.push_back(token);
  dry_known_ = false;
  const auto keep = static_cast<size_t>(std::max<int64_t>(window_, 0));
  // Now and then, so that it costs nothing.
  if (window_ > 0 && history_.size() >= 2 * keep + 64) {
    history_.erase(history_.begin(), history_.end() - static_cast<int64_t>(keep));
  }
}

}  // namespace weft
