// One vector of the hidden states of a text's tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/models/hyperparameters.h"

namespace weft {

class EmbeddingPool {
 public:
  // The states of the next tokens, one behind the other, of `width` elements each.
  void Add(absl::Span<const float> states, int64_t width, Pooling pooling);
  // How many were added.
  int64_t tokens() const { return tokens_; }
  void Reset() { *this = {}; }
  // [width], of length 1; all zero if no state was anything else. At least one token was added.
  std::vector<float> Result() const;

 private:
  std::vector<double> sum_;
  int64_t tokens_ = 0;
};

}  // namespace weft
