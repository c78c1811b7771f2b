#include "coordinator/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "coordinator/sampling/candidate_list.h"
#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

double MassOf(absl::Span<const Candidate> candidates, double maximum) {
  double mass = 0;
  for (const Candidate& c : candidates) {
    if (!std::isinf(c.logit)) mass += std::exp(c.logit - maximum);
  }
  return mass;
}

// `top` are the likeliest, in order.
LogProbabilities Make(absl::Span<const Candidate> top, const Candidate& chosen, double maximum,
                      double mass) {
  const auto of = [&](const Candidate& c) {
    return TokenLogProbability{c.id, static_cast<float>(c.logit - maximum - std::log(mass))};
  };
  LogProbabilities result;
  result.chosen = of(chosen);
  for (const Candidate& c : top) result.top.push_back(of(c));
  return result;
}

}  // namespace

LogProbabilities LogProbabilitiesOf(absl::Span<const float> logits, int32_t chosen, int64_t top) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  const float highest = *std::max_element(logits.begin(), logits.end());
  for (size_t i = 0; i < logits.size(); ++i) {
    float logit = logits[i];
    if (std::isinf(highest)) logit = logit == highest ? 0 : -highest;  // a certainty
    all.push_back({static_cast<int32_t>(i), logit});
  }
  const double maximum = std::isinf(highest) ? 0 : highest;
  const double mass = MassOf(all, maximum);
  const Candidate one = all[static_cast<size_t>(chosen)];
  const auto keep = static_cast<int32_t>(std::clamp<int64_t>(top, 0, std::ssize(all)));
  if (keep > 0) KeepTopK(keep, all);
  all.resize(static_cast<size_t>(keep));
  return Make(all, one, maximum, mass);
}

std::optional<LogProbabilities> LogProbabilitiesFrom(const CandidateRow& row, int32_t chosen,
                                                     int64_t top) {
  if (row.nan_count > 0) return std::nullopt;
  std::vector<Candidate> candidates = row.best;
  candidates.insert(candidates.end(), row.changed.begin(), row.changed.end());
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate& c) { return c.id == chosen; });
  if (found == candidates.end()) return std::nullopt;
  const Candidate one = *found;
  double maximum = row.rest_max;
  for (const Candidate& c : candidates) maximum = std::max(maximum, double{c.logit});
  if (std::isinf(maximum)) return std::nullopt;
  double mass = MassOf(candidates, maximum);
  if (row.rest_count > 0) mass += row.rest_sum * std::exp(row.rest_max - maximum);
  CandidateList list = CandidateList::OfRow(row, std::move(candidates), false);
  const int64_t want = std::clamp<int64_t>(top, 0, row.ids);
  if (std::ssize(list.list()) < want) return std::nullopt;
  list.list().resize(static_cast<size_t>(want));
  return Make(list.list(), one, maximum, mass);
}

}  // namespace weft
