// libFuzzer target: hostile bodies through the readers of the HTTP API. The first byte picks one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "coordinator/http/api_error.h"
#include "coordinator/http/chat_schema.h"
#include "coordinator/http/completion_schema.h"

namespace weft {
namespace {

// A refusal is the client's fault, and can be told.
void CheckStatus(const absl::Status& status) {
  if (status.ok()) return;
  const ApiError error = ApiErrorOf(status);
  if (error.http_status != 400 && error.http_status != 501) std::abort();
  if (Json::parse(JsonText(ApiErrorJson(error)), nullptr, false).is_discarded()) std::abort();
}

void CheckFields(const GenerationFields& fields) {
  if (!CheckSamplerOptions(fields.sampler).ok()) std::abort();
  if (fields.max_tokens == 0 || fields.choices < 1 || fields.choices > kMostChoices) std::abort();
}

void CheckBody(uint8_t reader, std::string_view body) {
  switch (reader % 5) {
    case 0: {
      const auto request = ReadChatBody(body, SamplerOptions());
      CheckStatus(request.status());
      if (!request.ok()) return;
      CheckFields(request->generation);
      for (const Json& message : request->messages) {
        if (!message["role"].is_string()) std::abort();
      }
      return;
    }
    case 1: {
      const auto request = ReadCompletionRequest(body, SamplerOptions());
      CheckStatus(request.status());
      if (request.ok()) CheckFields(request->generation);
      return;
    }
    case 2:
      return CheckStatus(ReadEmbeddingRequest(body).status());
    case 3:
      return CheckStatus(ReadTokenizeRequest(body).status());
    default:
      return CheckStatus(ReadDetokenizeRequest(body).status());
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  weft::CheckBody(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
