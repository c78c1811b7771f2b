// What a client wants generated, and how it ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/sampling/log_probabilities.h"
#include "coordinator/sampling/sampler_options.h"
#include "coordinator/sampling/token_constraint.h"

namespace weft {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token
  SamplerOptions sampler;
  int64_t max_tokens = -1;        // of the continuation; -1: until the text ends or no room is left
  std::vector<std::string> stop;  // texts that end the continuation, and are not part of it
  bool ignore_end = false;        // go on after the tokens that end a text
  bool special_tokens = false;    // write control tokens as their text
  int32_t log_probabilities =
      -1;  // of each token: its own and this many of the likeliest; -1: none
  std::unique_ptr<TokenConstraint> constraint;  // of what may come; null: anything
  Clock::TimePoint deadline = Clock::TimePoint::max();
  std::string client;  // clients take turns where requests wait
  bool embed = false;  // nothing is generated: the prompt becomes GenerationSummary::embedding
};

enum class FinishReason : uint8_t {
  kNone,         // under way, or ended by an error
  kEndOfText,    // the model ended
  kStopText,     // one of GenerationRequest::stop
  kLength,       // max_tokens
  kContextFull,  // no room for another token
};

// What came since the last one. `text` is whole characters, less what may still turn out to be a
// stop text; tokens come with the text that they end, and only where log-probabilities were asked
// for: what the model thought, before penalties and truncation.
struct GenerationPiece {
  std::string text;
  std::vector<LogProbabilities> tokens;
};

struct GenerationSummary {
  FinishReason reason = FinishReason::kNone;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;       // of the prompt, found in the cache
  int64_t generated_tokens = 0;    // with the one that ended the text, if one did
  double queue_seconds = 0;        // until it was admitted
  double first_token_seconds = 0;  // from submission
  double total_seconds = 0;
  std::vector<float> embedding;  // [n_embd], of length 1
};

}  // namespace weft
