#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

struct Typicality {
  double distance = 0;  // of the surprise from the entropy, in nats
  double p = 0;
  size_t index = 0;
};

}  // namespace

void KeepTypical(float p, size_t min_keep, std::vector<Candidate>& candidates) {
  if (p >= 1 || candidates.empty()) return;
  const Softmax softmax = SoftmaxOf(candidates);
  const double entropy = EntropyOf(softmax);
  std::vector<Typicality> order;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double share = softmax.weights[i] / softmax.total;
    const double distance =
        share > 0 ? std::abs(-std::log(share) - entropy) : std::numeric_limits<double>::infinity();
    order.push_back({distance, share, i});
  }
  std::sort(order.begin(), order.end(), [](const Typicality& a, const Typicality& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.index < b.index;
  });
  std::vector<Candidate> kept;
  double sum = 0;
  for (const Typicality& next : order) {
    kept.push_back(candidates[next.index]);
    sum += next.p;
    if (sum > p && kept.size() >= min_keep) break;
  }
  candidates = std::move(kept);
}

}  // namespace weft
