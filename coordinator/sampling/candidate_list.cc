#include "coordinator/sampling/candidate_list.h"

#include <algorithm>
#include <cmath>

#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

// How far the mass of the rest may be off, relative to itself: it is summed in F32.
constexpr double kTailSlack = 1e-3;
// And any mass, since the full chain adds up the same numbers one by one.
constexpr double kTotalSlack = 1e-7;

double Weight(float logit, double maximum) {
  return std::isinf(logit) ? 0 : std::exp(logit - maximum);
}

}  // namespace

CandidateList CandidateList::OfRow(const CandidateRow& row, std::vector<Candidate> candidates,
                                   bool filtered) {
  // As they mostly are: only changed ones may be out of order.
  if (!std::is_sorted(candidates.begin(), candidates.end(), Before)) {
    std::sort(candidates.begin(), candidates.end(), Before);
  }
  CandidateList list(std::move(candidates));
  if (row.rest_count == 0) return list;
  list.others_max_ = row.rest_max;
  list.most_mass_ = row.rest_sum * (1 + kTailSlack);
  list.least_mass_ = filtered ? 0 : row.rest_sum * (1 - kTailSlack);
  // Nothing of the rest is before the last of `best`, nor before what exceeds all of the rest.
  const auto first_other =
      std::find_if(list.known_.begin(), list.known_.end(), [&](const Candidate& c) {
        return c.logit <= row.rest_max && (row.best.empty() || Before(row.best.back(), c));
      });
  for (auto other = first_other; other != list.known_.end(); ++other) {
    const double weight = Weight(other->logit, row.rest_max);
    list.least_mass_ += weight;
    list.most_mass_ += weight;
  }
  list.most_others_ = row.rest_count + (list.known_.end() - first_other);
  list.known_.erase(first_other, list.known_.end());
  return list;
}

double CandidateList::KnownMass() const {
  double sum = 0;
  for (const Candidate& c : known_) sum += Weight(c.logit, known_[0].logit);
  return sum;
}

void CandidateList::TopK(int32_t k) {
  if (complete()) return KeepTopK(k, known_);
  if (k <= 0) return;
  const int64_t wanted = k - static_cast<int64_t>(known_.size());
  if (wanted <= 0) {
    DropOthers();
    return known_.resize(static_cast<size_t>(k));  // they are in order
  }
  if (wanted >= most_others_) return;
  // The largest of the others stay: at least their share of the mass.
  least_mass_ *= static_cast<double>(wanted) / static_cast<double>(most_others_);
  most_mass_ = std::min(most_mass_, static_cast<double>(wanted));
  most_others_ = wanted;
}

bool CandidateList::TopP(float p, size_t min_keep) {
  if (complete()) {
    KeepTopP(p, min_keep, known_);
    return true;
  }
  if (p >= 1) return true;
  if (known_.empty() || std::isinf(known_[0].logit)) return false;
  const double best = known_[0].logit;
  const double sure = KnownMass();
  const double scale = Weight(others_max_, best);
  const double one = p * (sure + least_mass_ * scale) * (1 - kTotalSlack);
  const double two = p * (sure + most_mass_ * scale) * (1 + kTotalSlack);
  const double low = std::min(one, two), high = std::max(one, two);
  double sum = 0;
  for (size_t i = 0; i < known_.size(); ++i) {
    sum += Weight(known_[i].logit, best);
    if (sum >= high) {
      const size_t keep = std::max(i + 1, min_keep);
      if (keep > known_.size()) return false;
      known_.resize(keep);
      DropOthers();
      return true;
    }
    if (sum >= low) return false;
  }
  // All known ones stay, and some of the others.
  least_mass_ = 0;
  return true;
}

bool CandidateList::MinP(float p, size_t min_keep) {
  if (complete()) {
    KeepMinP(p, min_keep, known_);
    return true;
  }
  if (p <= 0) return true;
  if (known_.empty() || min_keep > known_.size()) return false;
  const float least = LeastOfMinP(p, known_[0].logit);
  const size_t before = known_.size();
  KeepMinP(p, min_keep, known_);
  if (known_.size() < before || others_max_ < least) DropOthers();
  return true;
}

}  // namespace weft
