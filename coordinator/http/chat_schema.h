// The body of POST /v1/chat/completions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/http/generation_fields.h"
#include "coordinator/json/checked_json.h"

namespace weft {

inline constexpr int64_t kMostMessages = 8192;
inline constexpr int64_t kMostContentParts = 1024;  // of a message
inline constexpr int64_t kMostTools = 256;
inline constexpr int64_t kMostToolCalls = 256;  // of a message

struct ToolChoice {
  enum class Kind : uint8_t { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;  // kNamed: of the function
};

struct ChatBody {
  GenerationFields generation;
  // As the body has them, each with a known role and with its text parts joined by line ends to one
  // text.
  Json messages = Json::array();
  Json tools = Json::array();
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  Json template_arguments = Json::object();  // what the template sees beside the messages
};

// Errors: INVALID_ARGUMENT as "FIELD: what is wrong"; UNIMPLEMENTED in the same form for pictures,
// sounds and whatever else a model of texts cannot do.
absl::StatusOr<ChatBody> ReadChatBody(std::string_view body, const SamplerOptions& defaults);

}  // namespace weft
