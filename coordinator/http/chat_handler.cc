#include "coordinator/http/chat_handler.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/http/chat_schema.h"
#include "coordinator/http/chat_wording.h"
#include "coordinator/http/generation_run.h"
#include "coordinator/http/generation_setup.h"
#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

// What a body asks for, ready to run.
struct ChatJob {
  std::vector<GenerationRequest> requests;
  std::vector<std::unique_ptr<ReplyReader>> readers;
  ReplyForm form;
  bool log_probabilities = false;
};

absl::StatusOr<ChatJob> PrepareChat(const ServedModel& model, const std::string& body,
                                    const std::string& client) {
  ASSIGN_OR_RETURN(const ChatBody chat, ReadChatBody(body, model.sampler));
  const GenerationFields& fields = chat.generation;
  RETURN_IF_ERROR(CheckModel(model, fields.model));
  if (model.chat == nullptr) {
    return absl::UnimplementedError("messages: this model has no chat format");
  }
  ASSIGN_OR_RETURN(const ChatPrompt prompt, model.chat->Prompt(chat));
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                   PromptTokens(model, prompt.tokens, "messages"));
  ASSIGN_OR_RETURN(const GenerationSetup setup, GenerationSetup::Create(model, fields, client));
  ChatJob job;
  job.form = {fields.stream, fields.include_usage};
  job.log_probabilities = fields.log_probabilities >= 0;
  for (int64_t choice = 0; choice < fields.choices; ++choice) {
    GenerationRequest request = setup.Request(tokens, choice);
    request.special_tokens = prompt.special_tokens;
    request.stop.insert(request.stop.end(), prompt.stop.begin(), prompt.stop.end());
    if (prompt.make_constraint) {
      ASSIGN_OR_RETURN(request.constraint, prompt.make_constraint());
    }
    job.requests.push_back(std::move(request));
    job.readers.push_back(prompt.make_reader());
  }
  return job;
}

}  // namespace

HttpReply HandleChat(const ServedModel& model, const HttpRequest& request,
                     const std::string& client, ClientWatch& watch) {
  absl::StatusOr<ChatJob> job = PrepareChat(model, request.body, client);
  if (!job.ok()) return ErrorReply(job.status());
  auto wording = std::make_unique<ChatWording>(model, std::move(job->readers), job->form,
                                               job->log_probabilities);
  return RunGeneration(model, std::move(job->requests), std::move(wording), job->form, watch);
}

}  // namespace weft
