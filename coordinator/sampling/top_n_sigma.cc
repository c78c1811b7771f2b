#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/sampling/stages.h"

namespace weft {

void CutTopNSigma(float n, std::vector<Candidate>& candidates) {
  if (n <= 0) return;
  double sum = 0;
  int64_t count = 0;
  float maximum = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : candidates) {
    maximum = std::max(maximum, c.logit);
    if (!std::isfinite(c.logit)) continue;
    sum += c.logit;
    ++count;
  }
  if (count == 0) return;
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const Candidate& c : candidates) {
    if (std::isfinite(c.logit)) squares += (c.logit - mean) * (c.logit - mean);
  }
  const double least = maximum - n * std::sqrt(squares / static_cast<double>(count));
  for (Candidate& c : candidates) {
    if (c.logit < least) c.logit = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace weft
