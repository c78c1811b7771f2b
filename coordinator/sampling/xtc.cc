#include "coordinator/sampling/stages.h"

namespace weft {

void ExcludeTopChoices(float threshold, size_t min_keep, std::vector<Candidate>& candidates) {
  if (threshold > 0.5f || candidates.size() < 2) return;
  const auto [weights, total] = SoftmaxOf(candidates);
  size_t above = 0;
  while (above < candidates.size() && weights[above] > 0 && weights[above] >= threshold * total) {
    ++above;
  }
  if (above < 2 || candidates.size() - (above - 1) < min_keep) return;
  candidates.erase(candidates.begin(), candidates.begin() + static_cast<int64_t>(above - 1));
}

}  // namespace weft
