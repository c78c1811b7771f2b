#include "coordinator/http/model_handlers.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/http/api_error.h"
#include "coordinator/http/completion_schema.h"
#include "coordinator/http/generation_setup.h"
#include "coordinator/http/reply_json.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

Json ModelJson(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "weft"},
          {"max_model_len", model.engine->context()}};
}

absl::StatusOr<Json> Tokenize(const ServedModel& model, const std::string& body) {
  ASSIGN_OR_RETURN(const TokenizeRequest request, ReadTokenizeRequest(body));
  const absl::StatusOr<std::vector<int32_t>> tokens = model.tokenizer->Encode(
      request.content,
      {.add_special = request.add_special, .parse_special = request.parse_special});
  if (!tokens.ok()) return OfField("content", tokens.status());
  if (!request.with_pieces) return Json{{"tokens", *tokens}};
  Json pieces = Json::array();
  for (const int32_t id : *tokens) {
    pieces.push_back({{"id", id}, {"piece", ReplaceInvalidUtf8(model.tokenizer->Piece(id, true))}});
  }
  return Json{{"tokens", std::move(pieces)}};
}

absl::StatusOr<Json> Detokenize(const ServedModel& model, const std::string& body) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ReadDetokenizeRequest(body));
  for (const int32_t id : tokens) {
    if (id < model.tokenizer->vocabulary_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("tokens: token ", id,
                                                   " is outside the vocabulary of ",
                                                   model.tokenizer->vocabulary_size()));
  }
  const std::string text = model.tokenizer->Decode(tokens, {.render_special = true});
  return Json{{"content", ReplaceInvalidUtf8(text)}};
}

HttpReply ReplyOf(const absl::StatusOr<Json>& json) {
  return json.ok() ? JsonReply(*json) : ErrorReply(json.status());
}

}  // namespace

HttpReply HandleModels(const ServedModel& model) {
  Json data = Json::array();
  data.push_back(ModelJson(model));
  return JsonReply({{"object", "list"}, {"data", std::move(data)}});
}

HttpReply HandleModel(const ServedModel& model, const std::string& name) {
  const absl::Status known = CheckModel(model, name);
  return known.ok() ? JsonReply(ModelJson(model)) : ErrorReply(known);
}

HttpReply HandleTokenize(const ServedModel& model, const HttpRequest& request) {
  return ReplyOf(Tokenize(model, request.body));
}

HttpReply HandleDetokenize(const ServedModel& model, const HttpRequest& request) {
  return ReplyOf(Detokenize(model, request.body));
}

}  // namespace weft
