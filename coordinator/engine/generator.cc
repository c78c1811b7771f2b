#include "coordinator/engine/generator.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {

std::string_view StopReasonText(StopReason reason) {
  switch (reason) {
    case StopReason::kLength:
      return "length";
    case StopReason::kEndOfText:
      return "end of text";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

namespace {

// Feeds tokens as Prefill says. The last step is left in flight.
absl::StatusOr<std::vector<float>> FeedButLast(
    ModelRunner& runner, absl::Span<const int32_t> tokens, int64_t first, bool all,
    const PrefillProgress& progress,
    absl::FunctionRef<absl::Status(absl::Span<const BatchToken>)> launch_last) {
  std::vector<float> logits;
  const auto ubatch = static_cast<size_t>(runner.options().ubatch);
  size_t done = 0;
  // Several steps are under way where they follow each other through several devices.
  const auto collect = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<float> rows, runner.Collect());
    logits.insert(logits.end(), rows.begin(), rows.end());
    done = std::min(done + ubatch, tokens.size());
    if (progress) progress(static_cast<int64_t>(done), static_cast<int64_t>(tokens.size()));
    return absl::OkStatus();
  };
  for (size_t at = 0; at < tokens.size(); at += ubatch) {
    const size_t count = std::min(ubatch, tokens.size() - at);
    std::vector<BatchToken> batch;
    for (size_t i = 0; i < count; ++i) {
      const bool last = at + i + 1 == tokens.size();
      batch.push_back({tokens[at + i], first + static_cast<int64_t>(at + i), 0, all || last});
    }
    if (runner.in_flight() >= runner.max_in_flight()) RETURN_IF_ERROR(collect());
    RETURN_IF_ERROR(at + count == tokens.size() ? launch_last(batch) : runner.Launch(batch));
  }
  while (runner.in_flight() > 1) RETURN_IF_ERROR(collect());
  return logits;
}

// The next token of one sequence: from candidates where the runner has them and they tell, else
// from all logits.
class Chooser {
 public:
  Chooser(ModelRunner& runner, const GenerateCallbacks& callbacks)
      : runner_(runner),
        callbacks_(callbacks),
        brief_(runner.options().candidates > 0 && callbacks.choose_candidate) {}

  // Launches a step of which the last token is the output.
  absl::Status Launch(absl::Span<const BatchToken> batch) {
    last_ = batch.back();
    if (!brief_) return runner_.Launch(batch);
    const std::vector<int32_t> changed =
        callbacks_.changed ? callbacks_.changed() : std::vector<int32_t>();
    return runner_.LaunchForCandidates(batch, {&changed, 1});
  }

  // Waits for that step.
  absl::Status Collect() {
    if (!brief_) {
      ASSIGN_OR_RETURN(logits_, runner_.Collect());
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(rows_, runner_.CollectCandidates());
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> Choose() {
    if (brief_) {
      ASSIGN_OR_RETURN(const std::optional<int32_t> token, callbacks_.choose_candidate(rows_[0]));
      if (token) return *token;
      ASSIGN_OR_RETURN(logits_, runner_.FetchLogits(last_));
    }
    return callbacks_.choose(logits_);
  }

 private:
  ModelRunner& runner_;
  const GenerateCallbacks& callbacks_;
  const bool brief_;
  BatchToken last_;
  std::vector<float> logits_;
  std::vector<CandidateRow> rows_;
};

}  // namespace

absl::StatusOr<std::vector<float>> Prefill(ModelRunner& runner, absl::Span<const int32_t> tokens,
                                           int64_t first, bool all,
                                           const PrefillProgress& progress) {
  if (tokens.empty()) return std::vector<float>();
  ASSIGN_OR_RETURN(std::vector<float> logits,
                   FeedButLast(runner, tokens, first, all, progress,
                               [&](absl::Span<const BatchToken> b) { return runner.Launch(b); }));
  ASSIGN_OR_RETURN(const std::vector<float> rows, runner.Collect());
  logits.insert(logits.end(), rows.begin(), rows.end());
  const auto total = static_cast<int64_t>(tokens.size());
  if (progress) progress(total, total);
  return logits;
}

namespace {

// Hands a timer to a runner and takes it away again.
class TimerUse {
 public:
  TimerUse(ModelRunner& runner, TokenTimer* timer) : runner_(runner), timer_(timer) {
    runner_.set_timer(timer_);
    if (timer_ != nullptr) timer_->Begin();
  }
  ~TimerUse() {
    if (timer_ != nullptr) timer_->End();
    runner_.set_timer(nullptr);
  }
  void Begin() {
    if (timer_ != nullptr) timer_->Begin();
  }
  void Mark(TokenPart part) {
    if (timer_ != nullptr) timer_->Mark(part);
  }

 private:
  ModelRunner& runner_;
  TokenTimer* const timer_;
};

}  // namespace

absl::StatusOr<GenerateResult> Generate(ModelRunner& runner, const Clock& clock,
                                        absl::Span<const int32_t> prompt, int64_t count,
                                        const GenerateCallbacks& callbacks) {
  const int64_t context = runner.options().context;
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt has no tokens");
  if (static_cast<int64_t>(prompt.size()) > context) {
    return absl::OutOfRangeError(absl::StrCat("the prompt has ", prompt.size(),
                                              " tokens, the context holds ", context,
                                              "; raise -c or shorten the prompt"));
  }
  GenerateResult result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  runner.Truncate(0, 0);
  const Clock::TimePoint start = clock.Now();
  Chooser chooser(runner, callbacks);
  const auto launch = [&](absl::Span<const BatchToken> batch) { return chooser.Launch(batch); };
  RETURN_IF_ERROR(FeedButLast(runner, prompt, 0, false, callbacks.progress, launch).status());
  RETURN_IF_ERROR(chooser.Collect());
  if (callbacks.progress) callbacks.progress(result.prompt_tokens, result.prompt_tokens);
  result.prompt_seconds = SecondsSince(clock, start);
  const Clock::TimePoint decode_start = clock.Now();
  int64_t position = result.prompt_tokens;
  TimerUse timer(runner, callbacks.timer);
  while (count < 0 || static_cast<int64_t>(result.tokens.size()) < count) {
    ASSIGN_OR_RETURN(const int32_t token, chooser.Choose());
    timer.Mark(TokenPart::kSampling);
    if (callbacks.ends && callbacks.ends(token)) {
      result.stop = StopReason::kEndOfText;
      break;
    }
    result.tokens.push_back(token);
    if (callbacks.emit && !callbacks.emit(token)) {
      result.stop = StopReason::kCancelled;
      break;
    }
    timer.Mark(TokenPart::kText);
    // The last token wanted need not go through the model.
    if (static_cast<int64_t>(result.tokens.size()) == count) break;
    if (position >= context) {
      result.stop = StopReason::kContextFull;
      break;
    }
    const BatchToken next = {token, position++, 0, true};
    RETURN_IF_ERROR(chooser.Launch({&next, 1}));
    RETURN_IF_ERROR(chooser.Collect());
    timer.Mark(TokenPart::kReading);
    timer.Begin();
  }
  result.decode_seconds = SecondsSince(clock, decode_start);
  return result;
}

}  // namespace weft
