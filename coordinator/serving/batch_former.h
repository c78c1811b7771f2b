// Which sequences get how many tokens of the next step: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// A sequence that has a slot, in order of admission.
struct BatchCandidate {
  int64_t remaining = 0;      // tokens that no step has been given; 0: it waits for its next one
  bool wants_logits = false;  // all logits of its next token, not candidates
  int64_t free_tokens = 0;    // that fit the pages it has
};

struct BatchLimits {
  int64_t tokens = 0;       // of a step
  int64_t free_pages = 0;   // of the cache
  int64_t page_tokens = 0;  // that a page holds
  int64_t stages = 1;       // parts of the model that work on steps of their own
};

struct BatchShare {
  int32_t candidate = 0;  // its position
  int64_t tokens = 0;
  bool operator==(const BatchShare&) const = default;
};

struct BatchChoice {
  std::vector<BatchShare> shares;
  bool logits = false;  // the step returns all logits
  // There would have been more, had the cache more pages.
  bool short_of_pages = false;
};

// Sequences with one token to go come first, so that no prompt holds up what is being read by
// somebody; of several stages, each step takes its part of them, so that all stages have work. What
// is left of the step goes to prompts, the oldest first. Those that want all logits have a step of
// their own. `first` says where to begin among the sequences with one token, so that nobody is left
// out for long.
BatchChoice FormBatch(absl::Span<const BatchCandidate> candidates, const BatchLimits& limits,
                      int64_t first);

}  // namespace weft
