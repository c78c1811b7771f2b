#include "coordinator/http/completion_handler.h"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "coordinator/http/completion_schema.h"
#include "coordinator/http/generation_run.h"
#include "coordinator/http/generation_setup.h"
#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

class CompletionWording final : public ReplyWording {
 public:
  // `echoes`: what stands before the continuations of each prompt; empty where nothing does.
  CompletionWording(const ServedModel& model, const std::vector<std::string>& echoes,
                    int64_t choices, const ReplyForm& form, bool log_probabilities)
      : tokenizer_(*model.tokenizer),
        model_name_(model.name),
        id_(model.ids->NextName("cmpl-")),
        created_(UnixSeconds()),
        choices_per_prompt_(choices),
        form_(form),
        wants_log_probabilities_(log_probabilities) {
    for (const std::string& echo : echoes) {
      for (int64_t i = 0; i < choices; ++i) choices_.emplace_back().text = echo;
    }
  }

  std::vector<Json> Begin() override {
    std::vector<Json> chunks;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i].text.empty()) continue;
      chunks.push_back(Reply(OneChoice(static_cast<int64_t>(i), choices_[i].text, {}, nullptr)));
    }
    return chunks;
  }

  std::vector<Json> Piece(int64_t choice, GenerationPiece piece) override {
    Choice& taken = choices_[choice];
    if (form_.stream) {
      return {Reply(OneChoice(choice, piece.text, piece.tokens, nullptr))};
    }
    taken.text += piece.text;
    taken.tokens.insert(taken.tokens.end(), std::make_move_iterator(piece.tokens.begin()),
                        std::make_move_iterator(piece.tokens.end()));
    return {};
  }

  std::vector<Json> End(int64_t choice, const GenerationSummary& summary) override {
    choices_[choice].finish_reason = FinishReasonText(summary.reason);
    if (!form_.stream) return {};
    return {Reply(OneChoice(choice, "", {}, choices_[choice].finish_reason))};
  }

  Json Usage(const ChoiceStreams& streams) override {
    Json chunk = Reply(Json::array());
    chunk["usage"] = UsageJson(UsageOf(streams, choices_per_prompt_));
    return chunk;
  }

  Json Whole(const ChoiceStreams& streams) override {
    Json all = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Choice& choice = choices_[i];
      all.push_back(
          OneChoice(static_cast<int64_t>(i), choice.text, choice.tokens, choice.finish_reason)[0]);
    }
    Json reply = Reply(std::move(all));
    reply["usage"] = UsageJson(UsageOf(streams, choices_per_prompt_));
    return reply;
  }

 private:
  struct Choice {
    std::string text;
    std::vector<LogProbabilities> tokens;
    std::string finish_reason;
    int64_t offset = 0;  // of the next token in the text
  };

  Json Reply(Json choices) const {
    Json reply = {{"id", id_},
                  {"object", "text_completion"},
                  {"created", created_},
                  {"model", model_name_},
                  {"choices", std::move(choices)}};
    if (form_.include_usage) reply["usage"] = nullptr;
    return reply;
  }

  // A list of one.
  Json OneChoice(int64_t index, const std::string& text,
                 const std::vector<LogProbabilities>& tokens, Json finish_reason) {
    Json log_probabilities;
    if (wants_log_probabilities_ && !tokens.empty()) {
      log_probabilities = CompletionLogProbabilities(tokenizer_, tokens, choices_[index].offset);
    }
    Json choices = Json::array();
    choices.push_back({{"text", text},
                       {"index", index},
                       {"logprobs", std::move(log_probabilities)},
                       {"finish_reason", std::move(finish_reason)}});
    return choices;
  }

  const Tokenizer& tokenizer_;
  const std::string model_name_;
  const std::string id_;
  const int64_t created_;
  const int64_t choices_per_prompt_;
  const ReplyForm form_;
  const bool wants_log_probabilities_;
  std::vector<Choice> choices_;
};

struct CompletionJob {
  std::vector<GenerationRequest> requests;
  std::unique_ptr<ReplyWording> wording;
  ReplyForm form;
};

std::string EchoOf(const ServedModel& model, const PromptInput& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return model.tokenizer->Decode(std::get<std::vector<int32_t>>(prompt), DecodeOptions{});
}

absl::StatusOr<CompletionJob> PrepareCompletion(const ServedModel& model, const std::string& body,
                                                const std::string& client) {
  ASSIGN_OR_RETURN(const CompletionRequest completion, ReadCompletionRequest(body, model.sampler));
  const GenerationFields& fields = completion.generation;
  RETURN_IF_ERROR(CheckModel(model, fields.model));
  ASSIGN_OR_RETURN(const GenerationSetup setup, GenerationSetup::Create(model, fields, client));
  ASSIGN_OR_RETURN(const ConstraintMaker make_constraint, setup.Constraint());
  CompletionJob job;
  std::vector<std::string> echoes;
  for (const PromptInput& prompt : completion.prompts) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, PromptTokens(model, prompt, "prompt"));
    for (int64_t i = 0; i < fields.choices; ++i) {
      const auto choice = static_cast<int64_t>(job.requests.size());
      GenerationRequest& request = job.requests.emplace_back(setup.Request(tokens, choice));
      if (make_constraint) {
        ASSIGN_OR_RETURN(request.constraint, make_constraint());
      }
    }
    echoes.push_back(completion.echo ? EchoOf(model, prompt) : "");
  }
  job.form = {fields.stream, fields.include_usage};
  job.wording = std::make_unique<CompletionWording>(model, echoes, fields.choices, job.form,
                                                    fields.log_probabilities >= 0);
  return job;
}

}  // namespace

HttpReply HandleCompletion(const ServedModel& model, const HttpRequest& request,
                           const std::string& client, ClientWatch& watch) {
  absl::StatusOr<CompletionJob> job = PrepareCompletion(model, request.body, client);
  if (!job.ok()) return ErrorReply(job.status());
  return RunGeneration(model, std::move(job->requests), std::move(job->wording), job->form, watch);
}

}  // namespace weft
