// Temperature, fixed or by entropy, and the draw.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/sampling/stages.h"

namespace weft {

Softmax SoftmaxOf(absl::Span<const Candidate> candidates) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : candidates) maximum = std::max(maximum, c.logit);
  Softmax softmax;
  softmax.weights.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    softmax.weights.push_back(std::isinf(c.logit) ? 0 : std::exp(double{c.logit} - maximum));
    softmax.total += softmax.weights.back();
  }
  return softmax;
}

double EntropyOf(const Softmax& softmax) {
  double entropy = 0;
  for (const double weight : softmax.weights) {
    if (weight > 0) entropy -= weight / softmax.total * std::log(weight / softmax.total);
  }
  return entropy;
}

void ApplyTemperature(float temperature, std::vector<Candidate>& candidates) {
  for (Candidate& c : candidates) c.logit /= temperature;
}

float DynamicTemperature(float temperature, float range, float exponent,
                         absl::Span<const Candidate> candidates) {
  if (range <= 0 || candidates.size() < 2) return temperature;
  const double entropy = EntropyOf(SoftmaxOf(candidates));
  const double share =
      std::clamp(entropy / std::log(static_cast<double>(candidates.size())), 0.0, 1.0);
  const double low = std::max(0.0, double{temperature} - range);
  const double high = double{temperature} + range;
  return static_cast<float>(low + (high - low) * std::pow(share, double{exponent}));
}

size_t DrawFromSoftmax(absl::Span<const Candidate> candidates, double uniform) {
  const auto [weights, total] = SoftmaxOf(candidates);
  double sum = 0;
  size_t last = 0;  // the last one that can be drawn at all, for a uniform that rounds to the total
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    sum += weights[i];
    if (sum >= uniform * total) return i;
  }
  return last;
}

}  // namespace weft
