#include "coordinator/serving/sequence.h"

#include <iterator>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/sampling/log_probabilities.h"

namespace weft {
namespace {

// A form that is too much to follow is the request's fault, not a lack of room for it.
absl::Status OfRequest(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::InvalidArgumentError(status.message());
}

}  // namespace

Sequence::Sequence(GenerationRequest request, std::shared_ptr<GenerationStream> stream,
                   const Tokenizer& tokenizer, const Clock& clock)
    : request_(std::move(request)),
      stream_(std::move(stream)),
      tokenizer_(tokenizer),
      clock_(clock),
      sampler_(request_.sampler),
      tokens_(request_.prompt),
      stop_(request_.stop),
      submitted_(clock.Now()),
      last_token_(submitted_) {
  sampler_.SetFilter(request_.constraint.get());
  for (const int32_t token : tokens_) sampler_.Accept(token);
  summary_.prompt_tokens = static_cast<int64_t>(tokens_.size());
}

absl::Status Sequence::Unwanted(Clock::TimePoint now) const {
  // Whoever waits for it gives it up then, too.
  if (now > request_.deadline) {
    return absl::DeadlineExceededError("the request was not finished in time");
  }
  if (cancelled()) return absl::CancelledError("the client left");
  return absl::OkStatus();
}

bool Sequence::Admitted(int64_t reused) {
  computed = reused;
  pool_.Reset();
  if (std::exchange(admitted_, true)) return false;
  summary_.queue_seconds = SecondsSince(clock_, submitted_);
  summary_.reused_tokens = reused;
  return true;
}

absl::StatusOr<bool> Sequence::TakeHidden(absl::Span<const float> states, int64_t width,
                                          Pooling pooling) {
  if (pooling == Pooling::kNone) {
    return absl::UnimplementedError("input: how this model makes embeddings is not known here");
  }
  pool_.Add(states, width, pooling);
  if (pool_.tokens() < static_cast<int64_t>(tokens_.size())) return false;
  summary_.embedding = pool_.Result();
  summary_.reason = FinishReason::kEndOfText;
  return true;
}

absl::StatusOr<std::optional<int32_t>> Sequence::Choose(const CandidateRow& row) {
  const absl::StatusOr<std::optional<int32_t>> sampled = sampler_.SampleFrom(row);
  if (!sampled.ok()) return OfRequest(sampled.status());
  const std::optional<int32_t> token = *sampled;
  if (token && request_.log_probabilities >= 0) {
    chosen_ = LogProbabilitiesFrom(row, *token, request_.log_probabilities);
  }
  return token;
}

absl::StatusOr<int32_t> Sequence::Choose(absl::Span<const float> logits) {
  const absl::StatusOr<int32_t> sampled = sampler_.Sample(logits);
  if (!sampled.ok()) return OfRequest(sampled.status());
  const int32_t token = *sampled;
  if (request_.log_probabilities >= 0) {
    chosen_ = LogProbabilitiesOf(logits, token, request_.log_probabilities);
  }
  return token;
}

absl::StatusOr<bool> Sequence::Accept(int32_t token) {
  const Clock::TimePoint now = clock_.Now();
  seconds_of_last_token_ = std::chrono::duration<double>(now - last_token_).count();
  last_token_ = now;
  if (summary_.generated_tokens++ == 0) {
    summary_.first_token_seconds = std::chrono::duration<double>(now - submitted_).count();
  }
  wants_logits = false;
  if (!request_.ignore_end && tokenizer_.IsEndOfGeneration(token)) {
    chosen_.reset();
    summary_.reason = FinishReason::kEndOfText;
    return true;
  }
  if (request_.constraint != nullptr) {
    RETURN_IF_ERROR(OfRequest(request_.constraint->Accept(token)));
  }
  tokens_.push_back(token);
  sampler_.Accept(token);
  unread_.push_back({token, std::exchange(chosen_, std::nullopt)});
  // Without a text to stop at nothing of the next step depends on the text of this one.
  if (!request_.stop.empty()) ReadTokens();
  if (stop_.found()) {
    summary_.reason = FinishReason::kStopText;
    return true;
  }
  if (request_.max_tokens >= 0 && summary_.generated_tokens >= request_.max_tokens) {
    summary_.reason = FinishReason::kLength;
    return true;
  }
  return false;
}

void Sequence::ReadTokens() {
  for (UnreadToken& unread : unread_) {
    if (unread.probabilities) held_.push_back(*std::move(unread.probabilities));
    const std::string text =
        stop_.Append(utf8_.Append(tokenizer_.Piece(unread.token, request_.special_tokens)));
    if (!text.empty()) Emit(text);
  }
  unread_.clear();
}

void Sequence::Emit(std::string_view text) {
  ready_.text += text;
  ready_.tokens.insert(ready_.tokens.end(), std::make_move_iterator(held_.begin()),
                       std::make_move_iterator(held_.end()));
  held_.clear();
}

void Sequence::Deliver() {
  ReadTokens();
  if (ready_.text.empty() && ready_.tokens.empty()) return;
  stream_->Push(std::exchange(ready_, {}));
}

void Sequence::Finish(absl::Status status) {
  ReadTokens();
  if (status.ok() && !stop_.found()) Emit(stop_.Append(utf8_.Finish()) + stop_.Finish());
  Deliver();
  summary_.total_seconds = SecondsSince(clock_, submitted_);
  stream_->Finish(std::move(status), summary_);
}

}  // namespace weft
