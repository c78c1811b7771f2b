// Continues one sequence: prompt in chunks, then a token at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "coordinator/engine/model_runner.h"

namespace weft {

enum class StopReason : uint8_t {
  kLength,       // as many tokens as asked for
  kEndOfText,    // the model ended
  kContextFull,  // no room for another token
  kCancelled,    // the caller's word
};

// "length", "end of text", "context full", "cancelled".
std::string_view StopReasonText(StopReason reason);

struct GenerateResult {
  std::vector<int32_t> tokens;  // the continuation, without the token that ended it
  StopReason stop = StopReason::kLength;
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
  double decode_seconds = 0;
};

// Called with prompt tokens done and in all, after each step.
using PrefillProgress = std::function<void(int64_t done, int64_t total)>;

struct GenerateCallbacks {
  // Chooses from a row of logits.
  std::function<absl::StatusOr<int32_t>(absl::Span<const float>)> choose;
  // Chooses from candidates, or gives nothing if these do not tell; then `choose` is asked. Both
  // may be empty, or the runner have no candidates: then steps return all logits.
  std::function<absl::StatusOr<std::optional<int32_t>>(const CandidateRow&)> choose_candidate;
  // The ids whose logits the next choice changes.
  std::function<std::vector<int32_t>()> changed;
  // True for tokens that end the text. May be empty: never stop.
  std::function<bool(int32_t)> ends;
  // Called with each token as it comes; false stops. May be empty.
  std::function<bool(int32_t)> emit;
  // While the prompt is fed. May be empty.
  PrefillProgress progress;
  // A token begins where the one before it was chosen. May be null.
  TokenTimer* timer = nullptr;
};

// Feeds tokens [0, tokens.size()) of sequence 0 from position `first` on in steps of at most
// ubatch. Returns the logits of the last token, or with `all` those of every token. The sequence
// keeps its positions.
absl::StatusOr<std::vector<float>> Prefill(ModelRunner& runner, absl::Span<const int32_t> tokens,
                                           int64_t first, bool all,
                                           const PrefillProgress& progress = nullptr);

// Empties sequence 0, feeds `prompt` and continues it by up to `count` tokens (negative: until the
// text ends or the context is full). Errors: INVALID_ARGUMENT for an empty prompt, OUT_OF_RANGE for
// one that does not fit the context.
absl::StatusOr<GenerateResult> Generate(ModelRunner& runner, const Clock& clock,
                                        absl::Span<const int32_t> prompt, int64_t count,
                                        const GenerateCallbacks& callbacks);

}  // namespace weft
