// Parts of replies in the shapes of OpenAI's API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/http/http_message.h"
#include "coordinator/http/choice_streams.h"
#include "coordinator/json/checked_json.h"
#include "coordinator/sampling/log_probabilities.h"
#include "coordinator/serving/generation_request.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

// Tokens of one body's prompts and continuations.
struct UsageCount {
  int64_t prompt = 0;
  int64_t cached = 0;  // of these, found in the cache
  int64_t generated = 0;

  // A prompt counts once, whatever the number of its choices.
  void Add(const GenerationSummary& summary, bool first_choice_of_prompt);
};

// All of `streams`, which are over; prompts have `choices` each.
UsageCount UsageOf(const ChoiceStreams& streams, int64_t choices);

Json UsageJson(const UsageCount& usage);

// "stop" or "length".
std::string FinishReasonText(FinishReason reason);

// The "content" list of a chat choice's "logprobs".
Json ChatLogProbabilities(const Tokenizer& tokenizer, const std::vector<LogProbabilities>& tokens);

// "logprobs" of text completions. `offset`: bytes of text before the first token; moved on.
Json CompletionLogProbabilities(const Tokenizer& tokenizer,
                                const std::vector<LogProbabilities>& tokens, int64_t& offset);

HttpReply JsonReply(const Json& json);
// With Retry-After where trying again helps.
HttpReply ErrorReply(const absl::Status& status);

}  // namespace weft
