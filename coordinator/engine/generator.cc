#include "coordinator/engine/generator.h"

#include <algorithm>

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

absl::StatusOr<std::vector<float>> Prefill(ModelRunner& runner, absl::Span<const int32_t> tokens,
                                           int64_t first, bool all,
                                           const PrefillProgress& progress) {
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
    RETURN_IF_ERROR(runner.Launch(batch));
  }
  while (runner.in_flight() > 0) RETURN_IF_ERROR(collect());
  return logits;
}

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
  ASSIGN_OR_RETURN(std::vector<float> logits,
                   Prefill(runner, prompt, 0, false, callbacks.progress));
  result.prompt_seconds = SecondsSince(clock, start);
  const Clock::TimePoint decode_start = clock.Now();
  int64_t position = result.prompt_tokens;
  while (count < 0 || static_cast<int64_t>(result.tokens.size()) < count) {
    ASSIGN_OR_RETURN(const int32_t token, callbacks.choose(logits));
    if (callbacks.ends && callbacks.ends(token)) {
      result.stop = StopReason::kEndOfText;
      break;
    }
    result.tokens.push_back(token);
    if (callbacks.emit && !callbacks.emit(token)) {
      result.stop = StopReason::kCancelled;
      break;
    }
    // The last token wanted need not go through the model.
    if (static_cast<int64_t>(result.tokens.size()) == count) break;
    if (position >= context) {
      result.stop = StopReason::kContextFull;
      break;
    }
    const BatchToken next = {token, position++, 0, true};
    ASSIGN_OR_RETURN(logits, runner.Step({&next, 1}));
  }
  result.decode_seconds = SecondsSince(clock, decode_start);
  return result;
}

}  // namespace weft
