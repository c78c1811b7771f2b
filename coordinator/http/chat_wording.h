// Replies to chats, in OpenAI's words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/http/chat_format.h"
#include "coordinator/http/generation_run.h"
#include "coordinator/http/served_model.h"

namespace weft {

class ChatWording final : public ReplyWording {
 public:
  // One reader for each choice. What `model` points to outlives it.
  ChatWording(const ServedModel& model, std::vector<std::unique_ptr<ReplyReader>> readers,
              const ReplyForm& form, bool log_probabilities);

  std::vector<Json> Begin() override;
  std::vector<Json> Piece(int64_t choice, GenerationPiece piece) override;
  std::vector<Json> End(int64_t choice, const GenerationSummary& summary) override;
  Json Usage(const ChoiceStreams& streams) override;
  Json Whole(const ChoiceStreams& streams) override;

 private:
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };
  struct Choice {
    std::unique_ptr<ReplyReader> reader;
    std::string content;
    std::string reasoning;
    std::vector<Call> calls;
    Json log_probabilities = Json::array();
    std::string finish_reason;
  };

  // Takes the events in; their deltas.
  std::vector<Json> Take(Choice& choice, const std::vector<ReplyEvent>& events);
  Json Delta(Choice& choice, const ReplyEvent& event);
  Json Chunk(Json choices) const;
  Json ChunkOf(int64_t choice, Json delta, Json log_probabilities, Json finish_reason) const;
  Json Message(const Choice& choice) const;

  const Tokenizer& tokenizer_;
  IdSource& ids_;
  const std::string model_name_;
  const std::string id_;
  const int64_t created_;
  const ReplyForm form_;
  const bool wants_log_probabilities_;
  std::vector<Choice> choices_;
};

}  // namespace weft
