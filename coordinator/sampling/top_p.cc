// Truncation by probability mass or share: top-p and min-p.
#include <algorithm>
#include <cmath>

#include "coordinator/sampling/stages.h"

namespace weft {

void KeepTopP(float p, size_t min_keep, std::vector<Candidate>& candidates) {
  if (p >= 1 || candidates.empty()) return;
  const auto [weights, total] = SoftmaxOf(candidates);
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += weights[i];
    if (sum >= p * total && i + 1 >= min_keep) {
      candidates.resize(i + 1);
      return;
    }
  }
}

float LeastOfMinP(float p, float maximum) { return maximum + std::log(p); }

void KeepMinP(float p, size_t min_keep, std::vector<Candidate>& candidates) {
  if (p <= 0 || candidates.empty()) return;
  const float least = LeastOfMinP(p, candidates[0].logit);
  size_t keep = 1;
  while (keep < candidates.size() && candidates[keep].logit >= least) ++keep;
  candidates.resize(std::min(std::max(keep, min_keep), candidates.size()));
}

}  // namespace weft
