// Sampling from candidates: what the full chain would choose, or the word that they do not tell.
#include <algorithm>
#include <cmath>

#include "coordinator/sampling/sampler.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// How far the mass of the rest may be off, relative to itself: it is summed in F32.
constexpr double kTailSlack = 1e-3;
// And any mass, since the full chain adds up the same numbers one by one.
constexpr double kTotalSlack = 1e-7;

// The candidates after penalties, in the order of the full chain as far as it is known.
struct Prefix {
  std::vector<Candidate> candidates;  // the first of the whole vocabulary
  std::vector<Candidate> unplaced;    // changed ones, which the rest may be before
  int64_t vocabulary = 0;
  float rest_max = -kInfinity;
  double rest_sum = 0;

  bool whole() const { return static_cast<int64_t>(candidates.size()) == vocabulary; }
};

// False if a logit is more than a number: then the full chain has ways of its own.
bool IsPlain(absl::Span<const Candidate> candidates) {
  return std::all_of(candidates.begin(), candidates.end(),
                     [](const Candidate& c) { return c.logit < kInfinity; });
}

Prefix MakePrefix(const CandidateRow& row, std::vector<Candidate> candidates) {
  Prefix prefix;
  prefix.vocabulary = row.ids;
  prefix.rest_max = row.rest_max;
  prefix.rest_sum = row.rest_sum;
  std::sort(candidates.begin(), candidates.end(), Before);
  if (row.rest_count > 0) {
    // Nothing of the rest is before the last of `best`, nor before what exceeds all of the rest.
    const auto known = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
      return c.logit <= row.rest_max && (row.best.empty() || Before(row.best.back(), c));
    });
    prefix.unplaced.assign(known, candidates.end());
    candidates.erase(known, candidates.end());
  }
  prefix.candidates = std::move(candidates);
  return prefix;
}

// As KeepTopP over the whole vocabulary; false where the mass of the rest, known to some digits
// only, decides.
bool KeepTopPOfAll(float p, Prefix& prefix) {
  std::vector<Candidate>& candidates = prefix.candidates;
  if (candidates.empty()) return false;
  const double best = candidates[0].logit;
  double sure = 0;
  for (const Candidate& c : candidates) sure += std::exp(c.logit - best);
  for (const Candidate& c : prefix.unplaced) sure += std::exp(c.logit - best);
  const double tail = prefix.rest_sum * std::exp(prefix.rest_max - best);
  const double low = p * (sure + tail * (1 - kTailSlack)) * (1 - kTotalSlack);
  const double high = p * (sure + tail * (1 + kTailSlack)) * (1 + kTotalSlack);
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += std::exp(candidates[i].logit - best);
    if (sum >= std::max(low, high)) {
      candidates.resize(i + 1);
      return true;
    }
    if (sum >= std::min(low, high)) return false;
  }
  return false;
}

// Leaves in prefix.candidates what the full chain would leave of the vocabulary; false if that is
// not known.
bool Truncate(const SamplerOptions& options, Prefix& prefix) {
  std::vector<Candidate>& candidates = prefix.candidates;
  const auto known = static_cast<int64_t>(candidates.size());
  const bool all = options.top_k <= 0 || options.top_k >= prefix.vocabulary;
  if (prefix.whole() || (!all && options.top_k <= known)) {
    KeepTopK(options.top_k, candidates);
    KeepTopP(options.top_p, candidates);
    KeepMinP(options.min_p, candidates);
    return true;
  }
  if (options.top_p < 1) {
    if (!all || !KeepTopPOfAll(options.top_p, prefix)) return false;
    KeepMinP(options.min_p, candidates);
    return true;
  }
  if (options.min_p <= 0 || candidates.empty()) return false;
  // Those that follow are at most rest_max.
  const bool rest_is_out = prefix.rest_max < LeastOfMinP(options.min_p, candidates[0].logit);
  KeepMinP(options.min_p, candidates);
  return rest_is_out || static_cast<int64_t>(candidates.size()) < known;
}

}  // namespace

std::vector<int32_t> Sampler::ChangedIds() const {
  if (!ChangesLogits(options_)) return {};
  std::vector<int32_t> ids(recent_.begin(), recent_.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

absl::StatusOr<std::optional<int32_t>> Sampler::SampleFrom(const CandidateRow& row) {
  if (row.nan_count > 0) return NotANumber(row.first_nan);
  const std::vector<int32_t> changing = ChangedIds();
  std::vector<int32_t> changed;
  for (const Candidate& candidate : row.changed) changed.push_back(candidate.id);
  if (!std::includes(changed.begin(), changed.end(), changing.begin(), changing.end())) {
    return std::nullopt;
  }
  std::vector<Candidate> candidates = row.best;
  candidates.insert(candidates.end(), row.changed.begin(), row.changed.end());
  if (!IsPlain(candidates) || !(row.rest_max < kInfinity)) return std::nullopt;
  const bool any = std::any_of(candidates.begin(), candidates.end(),
                               [](const Candidate& c) { return c.logit > -kInfinity; });
  // The rest is not before the best.
  if (!any) return NothingFinite();
  ApplyPenalties(options_, recent_, candidates);
  if (!IsPlain(candidates)) return std::nullopt;
  Prefix prefix = MakePrefix(row, std::move(candidates));
  if (options_.temperature <= 0) {
    if (prefix.candidates.empty()) return std::nullopt;
    (void)random_.Uniform();
    return prefix.candidates[0].id;
  }
  if (!Truncate(options_, prefix)) return std::nullopt;
  const double uniform = random_.Uniform();
  for (Candidate& candidate : prefix.candidates) candidate.logit /= options_.temperature;
  return prefix.candidates[DrawFromSoftmax(prefix.candidates, uniform)].id;
}

}  // namespace weft
