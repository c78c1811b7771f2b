// The bodies of the endpoints without messages: completions, embeddings, tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/http/generation_fields.h"
#include "coordinator/json/checked_json.h"

namespace weft {

inline constexpr int64_t kMostPrompts = 128;  // of a body, times their choices
inline constexpr int64_t kMostPromptTokens = int64_t{1} << 20;

// A text, or the tokens of one.
using PromptInput = std::variant<std::string, std::vector<int32_t>>;

// POST /v1/completions
// NOLINTNEXTLINE(bugprone-exception-escape): the library says that moving JSON does not throw.
struct CompletionRequest {
  GenerationFields generation;
  std::vector<PromptInput> prompts;
  bool echo = false;  // the prompt comes before its continuation
};
absl::StatusOr<CompletionRequest> ReadCompletionRequest(std::string_view body,
                                                        const SamplerOptions& defaults);

// POST /v1/embeddings
struct EmbeddingRequest {
  std::string model;
  std::vector<PromptInput> inputs;
  bool base64 = false;
};
absl::StatusOr<EmbeddingRequest> ReadEmbeddingRequest(std::string_view body);

// POST /tokenize
struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
};
absl::StatusOr<TokenizeRequest> ReadTokenizeRequest(std::string_view body);

// POST /detokenize
absl::StatusOr<std::vector<int32_t>> ReadDetokenizeRequest(std::string_view body);

// All errors: INVALID_ARGUMENT as "FIELD: what is wrong", UNIMPLEMENTED in the same form.

}  // namespace weft
