// Brings messages into the form that a template can render.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/chat/chat_capabilities.h"
#include "coordinator/chat/json_line.h"

namespace weft {

// NOLINTNEXTLINE(bugprone-exception-escape): the library says that moving JSON does not throw.
struct ChatConversation {
  Json messages;
  Json tools;  // null: none, or already in the messages
};

// `messages` as in OpenAI's API: objects with role, content (text, null or parts), tool_calls,
// tool_call_id, name, reasoning_content. Where the template cannot say something:
// * role "developer" becomes "system";
// * content parts are joined with line ends between them; a template that knows only parts gets
//   one; null becomes the empty text (but stays with calls, if the template takes that);
// * the arguments of calls become an object, or a text of JSON, as the template wants;
// * `tools` (null or an array) are described at the end of the system text;
// * calls become part of the content, as <tool_call>JSON</tool_call>, answers of tools become
//   messages of the user, as <tool_response>text</tool_response>;
// * the system text goes before the first message of the user, an empty line between them.
// Errors: INVALID_ARGUMENT, "messages[2].content[0]: ...", for what is no message or no text.
absl::StatusOr<ChatConversation> AdaptMessages(const Json& messages, const Json& tools,
                                               const ChatCapabilities& capabilities);

}  // namespace weft
