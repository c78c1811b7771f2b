#include "coordinator/http/embedding_handler.h"

#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "coordinator/http/completion_schema.h"
#include "coordinator/http/generation_run.h"
#include "coordinator/http/generation_setup.h"
#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

// As OpenAI's clients ask for it: the numbers in F32, little-endian.
std::string Base64(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const auto word = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  return absl::Base64Escape(bytes);
}

// Never streamed: everything is said at the end.
class EmbeddingWording final : public ReplyWording {
 public:
  EmbeddingWording(std::string model, bool base64) : model_(std::move(model)), base64_(base64) {}

  std::vector<Json> Begin() override { return {}; }
  std::vector<Json> Piece(int64_t, GenerationPiece) override { return {}; }
  std::vector<Json> End(int64_t, const GenerationSummary&) override { return {}; }
  Json Usage(const ChoiceStreams&) override { return {}; }

  Json Whole(const ChoiceStreams& streams) override {
    Json data = Json::array();
    int64_t tokens = 0;
    for (int64_t i = 0; i < streams.size(); ++i) {
      const GenerationSummary summary = streams.summary(i);
      tokens += summary.prompt_tokens;
      Json embedding = base64_ ? Json(Base64(summary.embedding)) : Json(summary.embedding);
      data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(embedding)}});
    }
    return {{"object", "list"},
            {"data", std::move(data)},
            {"model", model_},
            {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
  }

 private:
  const std::string model_;
  const bool base64_;
};

absl::StatusOr<std::vector<GenerationRequest>> Prepare(const ServedModel& model,
                                                       const EmbeddingRequest& body,
                                                       const std::string& client) {
  RETURN_IF_ERROR(CheckModel(model, body.model));
  std::vector<GenerationRequest> requests;
  for (const PromptInput& input : body.inputs) {
    GenerationRequest& request = requests.emplace_back();
    ASSIGN_OR_RETURN(request.prompt, PromptTokens(model, input, "input"));
    request.client = client;
    request.embed = true;
  }
  return requests;
}

}  // namespace

HttpReply HandleEmbeddings(const ServedModel& model, const HttpRequest& request,
                           const std::string& client, ClientWatch& watch) {
  const absl::StatusOr<EmbeddingRequest> body = ReadEmbeddingRequest(request.body);
  if (!body.ok()) return ErrorReply(body.status());
  absl::StatusOr<std::vector<GenerationRequest>> requests = Prepare(model, *body, client);
  if (!requests.ok()) return ErrorReply(requests.status());
  return RunGeneration(model, *std::move(requests),
                       std::make_unique<EmbeddingWording>(model.name, body->base64), {}, watch);
}

}  // namespace weft
