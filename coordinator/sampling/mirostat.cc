#include <algorithm>
#include <cmath>

#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

constexpr size_t kZipfCount = 100;  // m of the paper

}  // namespace

size_t CountOfMirostat1(float mu, absl::Span<const Candidate> candidates) {
  const std::vector<double> weights = SoftmaxOf(candidates).weights;
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < std::min(kZipfCount, weights.size()); ++i) {
    if (weights[i + 1] <= 0) break;
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * std::log(weights[i] / weights[i + 1]);
    squares += t * t;
  }
  const auto n = static_cast<double>(candidates.size());
  if (squares == 0 || products <= 0) return candidates.size();  // flat: no law to be seen
  const double exponent = products / squares;
  const double epsilon = exponent - 1;
  // The sum of i^-exponent up to n is near log(n) where the exponent is near 1.
  const double sum = std::abs(epsilon) < 1e-9 ? std::log(n) : (1 - std::pow(n, -epsilon)) / epsilon;
  const double k = std::pow(std::exp2(double{mu}) / sum, 1 / exponent);
  if (!(k < n)) return candidates.size();
  return std::max<size_t>(1, static_cast<size_t>(k));
}

size_t CountOfMirostat2(float mu, absl::Span<const Candidate> candidates) {
  const auto [weights, total] = SoftmaxOf(candidates);
  size_t keep = 1;
  while (keep < weights.size() && weights[keep] > 0 && -std::log2(weights[keep] / total) <= mu) {
    ++keep;
  }
  return keep;
}

}  // namespace weft
