#include "coordinator/http/chat_wording.h"

#include <utility>

#include "common/base/unix_time.h"
#include "coordinator/http/reply_json.h"

namespace weft {

ChatWording::ChatWording(const ServedModel& model,
                         std::vector<std::unique_ptr<ReplyReader>> readers, const ReplyForm& form,
                         bool log_probabilities)
    : tokenizer_(*model.tokenizer),
      ids_(*model.ids),
      model_name_(model.name),
      id_(model.ids->NextName("chatcmpl-")),
      created_(UnixSeconds()),
      form_(form),
      wants_log_probabilities_(log_probabilities),
      choices_(readers.size()) {
  for (size_t i = 0; i < readers.size(); ++i) choices_[i].reader = std::move(readers[i]);
}

Json ChatWording::Chunk(Json choices) const {
  Json chunk = {{"id", id_},
                {"object", "chat.completion.chunk"},
                {"created", created_},
                {"model", model_name_},
                {"choices", std::move(choices)}};
  if (form_.include_usage) chunk["usage"] = nullptr;
  return chunk;
}

Json ChatWording::ChunkOf(int64_t choice, Json delta, Json log_probabilities,
                          Json finish_reason) const {
  Json choices = Json::array();
  choices.push_back({{"index", choice},
                     {"delta", std::move(delta)},
                     {"logprobs", std::move(log_probabilities)},
                     {"finish_reason", std::move(finish_reason)}});
  return Chunk(std::move(choices));
}

std::vector<Json> ChatWording::Begin() {
  std::vector<Json> chunks;
  chunks.reserve(choices_.size());
  for (size_t i = 0; i < choices_.size(); ++i) {
    chunks.push_back(ChunkOf(static_cast<int64_t>(i), {{"role", "assistant"}, {"content", ""}},
                             nullptr, nullptr));
  }
  return chunks;
}

Json ChatWording::Delta(Choice& choice, const ReplyEvent& event) {
  if (event.kind == ReplyEvent::Kind::kContent) {
    choice.content += event.text;
    return {{"content", event.text}};
  }
  if (event.kind == ReplyEvent::Kind::kReasoning) {
    choice.reasoning += event.text;
    return {{"reasoning_content", event.text}};
  }
  Json call = {{"index", event.index}};
  while (choice.calls.size() <= static_cast<size_t>(event.index)) {
    choice.calls.push_back({ids_.NextName("call_"), "", ""});
  }
  Call& known = choice.calls[event.index];
  if (event.kind == ReplyEvent::Kind::kCallBegin) {
    known.name = event.text;
    call["id"] = known.id;
    call["type"] = "function";
    call["function"] = {{"name", event.text}, {"arguments", ""}};
  } else {
    known.arguments += event.text;
    call["function"] = {{"arguments", event.text}};
  }
  Json calls = Json::array();
  calls.push_back(std::move(call));
  return {{"tool_calls", std::move(calls)}};
}

std::vector<Json> ChatWording::Take(Choice& choice, const std::vector<ReplyEvent>& events) {
  std::vector<Json> deltas;
  deltas.reserve(events.size());
  for (const ReplyEvent& event : events) {
    if (event.kind != ReplyEvent::Kind::kEnd) deltas.push_back(Delta(choice, event));
  }
  return deltas;
}

std::vector<Json> ChatWording::Piece(int64_t choice, GenerationPiece piece) {
  Choice& taken = choices_[choice];
  std::vector<Json> deltas = Take(taken, taken.reader->Append(piece.text));
  Json log_probabilities;
  if (wants_log_probabilities_ && !piece.tokens.empty()) {
    Json content = ChatLogProbabilities(tokenizer_, piece.tokens);
    if (form_.stream) {
      log_probabilities = {{"content", std::move(content)}, {"refusal", nullptr}};
      // The reader may keep the text for later; the tokens are told now.
      if (deltas.empty()) deltas.push_back(Json::object());
    } else {
      for (Json& token : content) taken.log_probabilities.push_back(std::move(token));
    }
  }
  if (!form_.stream) return {};
  std::vector<Json> chunks;
  chunks.reserve(deltas.size() + 1);
  for (Json& delta : deltas) {
    chunks.push_back(
        ChunkOf(choice, std::move(delta), std::exchange(log_probabilities, nullptr), nullptr));
  }
  return chunks;
}

std::vector<Json> ChatWording::End(int64_t choice, const GenerationSummary& summary) {
  Choice& taken = choices_[choice];
  std::vector<Json> deltas = Take(taken, taken.reader->Finish());
  const std::string reason = FinishReasonText(summary.reason);
  taken.finish_reason = reason == "stop" && !taken.calls.empty() ? "tool_calls" : reason;
  if (!form_.stream) return {};
  std::vector<Json> chunks;
  chunks.reserve(deltas.size() + 1);
  for (Json& delta : deltas) {
    chunks.push_back(ChunkOf(choice, std::move(delta), nullptr, nullptr));
  }
  chunks.push_back(ChunkOf(choice, Json::object(), nullptr, taken.finish_reason));
  return chunks;
}

Json ChatWording::Usage(const ChoiceStreams& streams) {
  Json chunk = Chunk(Json::array());
  chunk["usage"] = UsageJson(UsageOf(streams, streams.size()));
  return chunk;
}

Json ChatWording::Message(const Choice& choice) const {
  Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
  if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
  if (choice.calls.empty()) return message;
  if (choice.content.empty()) message["content"] = nullptr;
  for (const Call& call : choice.calls) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

Json ChatWording::Whole(const ChoiceStreams& streams) {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    Json log_probabilities;
    if (wants_log_probabilities_) {
      log_probabilities = {{"content", std::move(choice.log_probabilities)}, {"refusal", nullptr}};
    }
    choices.push_back({{"index", i},
                       {"message", Message(choice)},
                       {"logprobs", std::move(log_probabilities)},
                       {"finish_reason", choice.finish_reason}});
  }
  return {{"id", id_},
          {"object", "chat.completion"},
          {"created", created_},
          {"model", model_name_},
          {"choices", std::move(choices)},
          {"usage", UsageJson(UsageOf(streams, streams.size()))}};
}

}  // namespace weft
