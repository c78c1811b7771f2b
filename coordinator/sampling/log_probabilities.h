// What the model thought of the chosen token and of the likeliest ones, before the sampler changed
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/sampling/candidate_row.h"

namespace weft {

struct TokenLogProbability {
  int32_t id = 0;
  float log_probability = 0;  // natural logarithm of the softmax over the vocabulary
};

struct LogProbabilities {
  TokenLogProbability chosen;
  std::vector<TokenLogProbability> top;  // the likeliest, first; equal ones by ascending id
};

// From all logits, which passed CheckLogits; `chosen` is one of them.
LogProbabilities LogProbabilitiesOf(absl::Span<const float> logits, int32_t chosen, int64_t top);

// From the candidates of a step, to four digits: the same ids, or nothing where `chosen` or one of
// the top is not among them. With as many candidates as `top` they are.
std::optional<LogProbabilities> LogProbabilitiesFrom(const CandidateRow& row, int32_t chosen,
                                                     int64_t top);

}  // namespace weft
