// DRY ("don't repeat yourself"): weakens tokens that would continue a repetition of what the text
// has just said, the more the longer the repetition.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

struct DryOptions {
  float multiplier = 0;  // 0: off
  float base = 1.75f;
  int32_t allowed_length = 2;  // repetitions of fewer tokens are free
  int32_t window = -1;         // last tokens that it looks at; 0: off, -1: all
};

// Breaker strings of the field: what ends a line, a name or a quotation starts anew.
std::vector<std::string> DefaultDryBreakers();

inline constexpr size_t kMostDryBreakers = 64;
inline constexpr size_t kLongestDryBreaker = 40;  // bytes of a string
inline constexpr size_t kLongestDryTail = 20;     // tokens after the first of a sequence
// The most ids that DRY asks a step about; where more of them repeat, all logits are fetched.
inline constexpr int64_t kMostDryIds = 1024;

// Sequences of tokens across which nothing counts as repeated.
class DryBreakers {
 public:
  // Adds one sequence: not empty, at most 1 + kLongestDryTail tokens, else it is ignored.
  void Add(absl::Span<const int32_t> sequence);

  // How many of the last tokens of `text` come after its last breaker; all of them if it has none.
  size_t TokensSince(absl::Span<const int32_t> text) const;

  bool empty() const { return tails_.empty(); }

 private:
  // By first token: what must follow it. An empty tail: nothing.
  absl::flat_hash_map<int32_t, std::vector<std::vector<int32_t>>> tails_;
};

// What DRY wants to know of a vocabulary.
struct DryVocabulary {
  int32_t size = 0;
  std::function<std::string(int32_t)> piece;                                     // bytes of a token
  std::function<absl::StatusOr<std::vector<int32_t>>(std::string_view)> encode;  // raw text
};

// Breakers for strings: every token that holds the string, and every token that ends with a
// beginning of it, followed by the tokens of its rest. Errors: INVALID_ARGUMENT for an empty
// string, too many or too long ones; what `encode` says.
absl::StatusOr<DryBreakers> ResolveDryBreakers(absl::Span<const std::string> strings,
                                               const DryVocabulary& vocabulary);

// What is to be subtracted from the logit of a token.
struct DryPenalty {
  int32_t id = 0;
  float penalty = 0;
  friend bool operator==(const DryPenalty&, const DryPenalty&) = default;
};

// The tokens that would continue a repetition, by ascending id. A token that would make the last n
// tokens of the text and itself a repetition, n >= allowed_length the longest such, gets
// multiplier * base^(n - allowed_length). O(window) time. `breakers` may be null.
std::vector<DryPenalty> FindDryPenalties(const DryOptions& options, const DryBreakers* breakers,
                                         absl::Span<const int32_t> text);

}  // namespace weft
