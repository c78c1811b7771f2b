#include "coordinator/serving/embedding_pool.h"

#include <algorithm>
#include <cmath>

namespace weft {

void EmbeddingPool::Add(absl::Span<const float> states, int64_t width, Pooling pooling) {
  sum_.resize(static_cast<size_t>(width), 0.0);
  for (auto state = states.begin(); state != states.end(); state += width, ++tokens_) {
    if (pooling == Pooling::kFirst && tokens_ > 0) continue;
    // The length is made 1 in the end, so a sum is as good as a mean.
    if (pooling == Pooling::kLast) std::fill(sum_.begin(), sum_.end(), 0.0);
    for (int64_t i = 0; i < width; ++i) sum_[static_cast<size_t>(i)] += state[i];
  }
}

std::vector<float> EmbeddingPool::Result() const {
  double squares = 0;
  for (const double x : sum_) squares += x * x;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> result;
  result.reserve(sum_.size());
  for (const double x : sum_) result.push_back(static_cast<float>(x * scale));
  return result;
}

}  // namespace weft
