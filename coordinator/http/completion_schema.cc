#include "coordinator/http/completion_schema.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kLongestText = size_t{1} << 30;  // the body's limit is less

absl::StatusOr<std::vector<int32_t>> ReadTokens(const JsonValue& value) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, value.Elements(kMostPromptTokens));
  std::vector<int32_t> tokens;
  tokens.reserve(elements.size());
  for (const JsonValue& element : elements) {
    ASSIGN_OR_RETURN(const int64_t id, element.Integer(0, INT32_MAX));
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

// "text", ["text", ...], [1, 2, ...] or [[1, 2], ...].
absl::StatusOr<std::vector<PromptInput>> ReadPrompts(const JsonValue& value) {
  std::vector<PromptInput> prompts;
  if (value.is_string()) {
    ASSIGN_OR_RETURN(prompts.emplace_back(), value.String(kLongestText));
    return prompts;
  }
  if (value.is_array() && !value.json().empty() && value.json()[0].is_number()) {
    ASSIGN_OR_RETURN(prompts.emplace_back(), ReadTokens(value));
    return prompts;
  }
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, value.Elements(kMostPrompts));
  if (elements.empty()) return value.Error("there is none");
  for (const JsonValue& element : elements) {
    if (element.is_array()) {
      ASSIGN_OR_RETURN(prompts.emplace_back(), ReadTokens(element));
    } else {
      ASSIGN_OR_RETURN(prompts.emplace_back(), element.String(kLongestText));
    }
  }
  return prompts;
}

absl::Status ReadEcho(const JsonValue& root, CompletionRequest& request) {
  ASSIGN_OR_RETURN(request.echo, ReadBool(root, "echo", false));
  if (const std::optional<JsonValue> count = root.Find("logprobs")) {
    ASSIGN_OR_RETURN(const int64_t top, count->Integer(0, kMostTopLogProbabilities));
    request.generation.log_probabilities = static_cast<int32_t>(top);
    if (request.echo) {
      return absl::UnimplementedError(
          "logprobs: this server has none of the prompt, so not together with echo");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionRequest> ReadCompletionRequest(std::string_view body,
                                                        const SamplerOptions& defaults) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(body, {}));
  const JsonValue root(json);
  CompletionRequest request;
  ASSIGN_OR_RETURN(
      request.generation,
      ReadGenerationFields(root, defaults, {"prompt", "echo", "logprobs", "suffix", "best_of"}));
  const std::optional<JsonValue> suffix = root.Find("suffix");
  if (suffix && !(suffix->is_string() && suffix->json().get_ref<const std::string&>().empty())) {
    return absl::UnimplementedError("suffix: this server only continues prompts");
  }
  const std::optional<JsonValue> best_of = root.Find("best_of");
  if (best_of) {
    ASSIGN_OR_RETURN(const int64_t count, best_of->Integer(1, kMostChoices));
    if (count != request.generation.choices) {
      return absl::UnimplementedError("best_of: this server returns all it generates; use n");
    }
  }
  ASSIGN_OR_RETURN(const JsonValue prompt, root.At("prompt"));
  ASSIGN_OR_RETURN(request.prompts, ReadPrompts(prompt));
  const auto count = static_cast<int64_t>(request.prompts.size());
  if (count * request.generation.choices > kMostPrompts) {
    return prompt.Error(absl::StrCat(count, " prompts with ", request.generation.choices,
                                     " choices each, the limit is ", kMostPrompts, " in all"));
  }
  RETURN_IF_ERROR(ReadEcho(root, request));
  return request;
}

absl::StatusOr<EmbeddingRequest> ReadEmbeddingRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(body, {}));
  const JsonValue root(json);
  RETURN_IF_ERROR(CheckFields(root, {"model", "input", "encoding_format", "dimensions", "user"}));
  EmbeddingRequest request;
  ASSIGN_OR_RETURN(request.model, ReadModel(root));
  ASSIGN_OR_RETURN(const JsonValue input, root.At("input"));
  ASSIGN_OR_RETURN(request.inputs, ReadPrompts(input));
  for (const PromptInput& one : request.inputs) {
    // A mark that begins every text would have an embedding, of nothing that was asked for.
    const bool empty = std::visit([](const auto& content) { return content.empty(); }, one);
    if (empty) return input.Error("is empty");
  }
  if (const std::optional<JsonValue> format = root.Find("encoding_format")) {
    ASSIGN_OR_RETURN(const std::string name, format->Text(kLongestName));
    if (name != "float" && name != "base64") return format->Error("want float or base64");
    request.base64 = name == "base64";
  }
  if (root.Find("dimensions")) {
    return absl::UnimplementedError("dimensions: this server returns all of them");
  }
  return request;
}

absl::StatusOr<TokenizeRequest> ReadTokenizeRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(body, {}));
  const JsonValue root(json);
  RETURN_IF_ERROR(
      CheckFields(root, {"content", "add_special", "parse_special", "with_pieces", "model"}));
  TokenizeRequest request;
  ASSIGN_OR_RETURN(const JsonValue content, root.At("content"));
  ASSIGN_OR_RETURN(request.content, content.String(kLongestText));
  ASSIGN_OR_RETURN(request.add_special, ReadBool(root, "add_special", false));
  ASSIGN_OR_RETURN(request.parse_special, ReadBool(root, "parse_special", true));
  ASSIGN_OR_RETURN(request.with_pieces, ReadBool(root, "with_pieces", false));
  return request;
}

absl::StatusOr<std::vector<int32_t>> ReadDetokenizeRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(body, {}));
  const JsonValue root(json);
  RETURN_IF_ERROR(CheckFields(root, {"tokens", "model"}));
  ASSIGN_OR_RETURN(const JsonValue tokens, root.At("tokens"));
  return ReadTokens(tokens);
}

}  // namespace weft
