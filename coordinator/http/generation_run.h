// One body's continuations on their way to its client, streamed or whole.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/http/http_message.h"
#include "coordinator/http/choice_streams.h"
#include "coordinator/http/served_model.h"
#include "coordinator/http/sse_writer.h"
#include "coordinator/serving/generation_request.h"

namespace weft {

// What becomes of the pieces: chat and text completions word them differently.
class ReplyWording {
 public:
  virtual ~ReplyWording() = default;
  // What a stream begins with, before any piece came.
  virtual std::vector<Json> Begin() = 0;
  // Chunks of a stream; where the reply is whole they are not used.
  virtual std::vector<Json> Piece(int64_t choice, GenerationPiece piece) = 0;
  virtual std::vector<Json> End(int64_t choice, const GenerationSummary& summary) = 0;
  // The last chunk of a stream, with the usage.
  virtual Json Usage(const ChoiceStreams& streams) = 0;
  // The whole reply, after all choices ended.
  virtual Json Whole(const ChoiceStreams& streams) = 0;
};

struct ReplyForm {
  bool stream = false;
  bool include_usage = false;
};

// Submits all requests, or none. When the client leaves they are cancelled. `watch` and what
// `model` points to outlive the reply.
HttpReply RunGeneration(const ServedModel& model, std::vector<GenerationRequest> requests,
                        std::unique_ptr<ReplyWording> wording, const ReplyForm& form,
                        ClientWatch& watch);

}  // namespace weft
