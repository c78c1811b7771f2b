#include "coordinator/http/reply_json.h"

#include "coordinator/http/api_error.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

Json TokenJson(const Tokenizer& tokenizer, const TokenLogProbability& token) {
  const std::string piece = tokenizer.Piece(token.id, true);
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<uint8_t>(byte));
  return {{"token", ReplaceInvalidUtf8(piece)},
          {"logprob", token.log_probability},
          {"bytes", std::move(bytes)}};
}

}  // namespace

void UsageCount::Add(const GenerationSummary& summary, bool first_choice_of_prompt) {
  generated += summary.generated_tokens;
  if (!first_choice_of_prompt) return;
  prompt += summary.prompt_tokens;
  cached += summary.reused_tokens;
}

UsageCount UsageOf(const ChoiceStreams& streams, int64_t choices) {
  UsageCount usage;
  for (int64_t i = 0; i < streams.size(); ++i) usage.Add(streams.summary(i), i % choices == 0);
  return usage;
}

Json UsageJson(const UsageCount& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.generated},
          {"total_tokens", usage.prompt + usage.generated},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

std::string FinishReasonText(FinishReason reason) {
  const bool length = reason == FinishReason::kLength || reason == FinishReason::kContextFull;
  return length ? "length" : "stop";
}

Json ChatLogProbabilities(const Tokenizer& tokenizer, const std::vector<LogProbabilities>& tokens) {
  Json content = Json::array();
  for (const LogProbabilities& token : tokens) {
    Json entry = TokenJson(tokenizer, token.chosen);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogProbability& top : token.top) {
      entry["top_logprobs"].push_back(TokenJson(tokenizer, top));
    }
    content.push_back(std::move(entry));
  }
  return content;
}

Json CompletionLogProbabilities(const Tokenizer& tokenizer,
                                const std::vector<LogProbabilities>& tokens, int64_t& offset) {
  const auto text = [&](int32_t id) { return ReplaceInvalidUtf8(tokenizer.Piece(id, true)); };
  Json names = Json::array();
  Json values = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const LogProbabilities& token : tokens) {
    names.push_back(text(token.chosen.id));
    values.push_back(token.chosen.log_probability);
    Json top = Json::object();
    for (const TokenLogProbability& other : token.top) {
      top[text(other.id)] = other.log_probability;
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += static_cast<int64_t>(tokenizer.Piece(token.chosen.id, false).size());
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

HttpReply JsonReply(const Json& json) {
  HttpReply reply;
  reply.body = JsonText(json);
  return reply;
}

HttpReply ErrorReply(const absl::Status& status) {
  const ApiError error = ApiErrorOf(status);
  HttpReply reply = JsonReply(ApiErrorJson(error));
  reply.status = error.http_status;
  if (error.http_status == 429) reply.headers.emplace_back("Retry-After", "1");
  if (error.http_status == 503) reply.headers.emplace_back("Retry-After", "5");
  if (error.http_status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace weft
