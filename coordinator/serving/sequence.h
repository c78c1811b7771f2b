// One request on its way: its tokens, how far the model has read them, and what comes out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "coordinator/models/hyperparameters.h"
#include "coordinator/sampling/candidate_row.h"
#include "coordinator/sampling/sampler.h"
#include "coordinator/serving/embedding_pool.h"
#include "coordinator/serving/generation_request.h"
#include "coordinator/serving/generation_stream.h"
#include "coordinator/serving/stop_matcher.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {

class Sequence {
 public:
  Sequence(GenerationRequest request, std::shared_ptr<GenerationStream> stream,
           const Tokenizer& tokenizer, const Clock& clock);

  const GenerationRequest& request() const { return request_; }
  bool cancelled() const { return stream_->cancelled(); }
  // Why nobody waits for it any longer: CANCELLED, or DEADLINE_EXCEEDED.
  absl::Status Unwanted(Clock::TimePoint now) const;

  // --- Where it stands; the loop's business ---

  // Of the prompt and what was generated, all of which the next token depends on.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  int32_t slot = -1;          // of the runner, while it is admitted
  int64_t computed = 0;       // tokens that steps have read, those in flight too
  int32_t in_flight = 0;      // steps with it that have not ended
  bool wants_logits = false;  // its last candidates did not tell

  int64_t remaining() const { return static_cast<int64_t>(tokens_.size()) - computed; }

  // It has a slot from now on, and `reused` of its tokens were found in the cache. False if it had
  // been admitted before and was set back.
  bool Admitted(int64_t reused);

  // --- The embedding, of requests that want one ---

  bool embeds() const { return request_.embed; }
  // Takes the hidden states of its next tokens, [width] each. True after those of the last. Errors:
  // UNIMPLEMENTED for a pooling that is not known.
  absl::StatusOr<bool> TakeHidden(absl::Span<const float> states, int64_t width, Pooling pooling);

  // --- The next token ---

  std::vector<int32_t> ChangedIds() const { return sampler_.ChangedIds(); }
  // Chooses a token; nothing if candidates do not tell. Errors: those of the sampler; a limit that
  // the constraint met is INVALID_ARGUMENT.
  absl::StatusOr<std::optional<int32_t>> Choose(const CandidateRow& row);
  absl::StatusOr<int32_t> Choose(absl::Span<const float> logits);
  // Takes the token that was chosen; what it adds waits for Deliver, its text too unless that may
  // end the continuation. True if the continuation is over, for the reason that Finish then
  // reports. Errors: those of the constraint.
  absl::StatusOr<bool> Accept(int32_t token);
  // Hands out what waits. This makes texts and wakes whoever reads the stream: not between steps.
  void Deliver();
  // Over for want of room.
  void EndForLackOfRoom() { summary_.reason = FinishReason::kContextFull; }

  // Ends the stream, with what waits, and the rest of the text if the status is OK.
  void Finish(absl::Status status);

  const GenerationSummary& summary() const { return summary_; }
  // Seconds since the token before, or since submission for the first.
  double SecondsOfLastToken() const { return seconds_of_last_token_; }

 private:
  struct UnreadToken {
    int32_t token;
    std::optional<LogProbabilities> probabilities;
  };

  // The text of the tokens that were accepted.
  void ReadTokens();
  // With the log probabilities that were held for it.
  void Emit(std::string_view text);

  GenerationRequest request_;
  std::shared_ptr<GenerationStream> stream_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  Sampler sampler_;
  std::vector<int32_t> tokens_;
  Utf8Stream utf8_;
  StopMatcher stop_;
  std::optional<LogProbabilities> chosen_;  // of the last token
  std::vector<UnreadToken> unread_;         // accepted, not yet text
  std::vector<LogProbabilities> held_;      // whose text has not come out yet
  GenerationPiece ready_;                   // for Deliver
  Clock::TimePoint submitted_;
  Clock::TimePoint last_token_;
  double seconds_of_last_token_ = 0;
  bool admitted_ = false;  // once, at least
  EmbeddingPool pool_;
  GenerationSummary summary_;
};

}  // namespace weft
