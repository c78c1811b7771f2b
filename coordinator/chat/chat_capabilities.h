// What a chat template can say, found by trying it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/chat/json_line.h"

namespace weft {

struct ChatCapabilities {
  bool system_role = false;       // a message with role "system" appears in the text
  bool text_content = false;      // content as one text appears
  bool content_parts = false;     // content as [{"type": "text", "text": ...}] appears
  bool tools = false;             // a list of tools appears
  bool tool_calls = false;        // calls of the assistant appear
  bool tool_role = false;         // they do, and so do answers with role "tool"
  bool null_content = false;      // a message with calls may have null as its content
  bool object_arguments = false;  // arguments of calls as an object; else as a text of JSON
  bool parallel_calls = false;    // several calls in one message
};

// Renders messages with tools (null or an array).
using TrialRender =
    std::function<absl::StatusOr<std::string>(const Json& messages, const Json& tools)>;

// Renders small conversations that hold words found nowhere else, and looks for the words.
ChatCapabilities FindCapabilities(const TrialRender& render);

// One line for logs: "system, tools, calls (objects, parallel), ...".
std::string CapabilitiesText(const ChatCapabilities& capabilities);

}  // namespace weft
