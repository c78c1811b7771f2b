// Temperature, fixed or by entropy, and the draw.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/sampling/stages.h"

namespace weft {

std::vector<double> SoftmaxWeights(absl::Span<const Candidate> candidates) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : candidates) maximum = std::max(maximum, c.logit);
  std::vector<double> weights;
  weights.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    weights.push_back(std::isinf(c.logit) ? 0 : std::exp(double{c.logit} - maximum));
  }
  return weights;
}

void ApplyTemperature(float temperature, std::vector<Candidate>& candidates) {
  for (Candidate& c : candidates) c.logit /= temperature;
}

float DynamicTemperature(float temperature, float range, float exponent,
                         absl::Span<const Candidate> candidates) {
  if (range <= 0 || candidates.size() < 2) return temperature;
  const std::vector<double> weights = SoftmaxWeights(candidates);
  double total = 0;
  for (const double weight : weights) total += weight;
  double entropy = 0;
  for (const double weight : weights) {
    if (weight > 0) entropy -= weight / total * std::log(weight / total);
  }
  const double share =
      std::clamp(entropy / std::log(static_cast<double>(candidates.size())), 0.0, 1.0);
  const double low = std::max(0.0, double{temperature} - range);
  const double high = double{temperature} + range;
  return static_cast<float>(low + (high - low) * std::pow(share, double{exponent}));
}

size_t DrawFromSoftmax(absl::Span<const Candidate> candidates, double uniform) {
  const std::vector<double> weights = SoftmaxWeights(candidates);
  double total = 0;
  for (const double weight : weights) total += weight;
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
