// Takes the text of a model apart while it arrives: answer, thoughts and calls of tools.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/chat/reply_event.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_sink.h"

namespace weft {

struct ReplyOptions {
  ReplyFormat format;
  // The client gave tools. Without them no call is looked for.
  bool with_tools = false;
  // The prompt ended inside the thoughts; see OpensThoughts().
  bool thoughts_opened = false;
};

// Whether a prompt ends with <think>, so that the reply begins with thoughts.
bool OpensThoughts(std::string_view prompt);

// The text must hold the markers: the tokens of <tool_call>, <|channel|> and the like are special,
// and have to be written out.
//
// How the text is cut into pieces changes nothing in the events but how their text is cut. A call
// comes as a whole, when it is complete and checked: two events. What looked like a call and is
// none comes as content, with its markers. White space around thoughts and calls is left out; all
// other text comes as it is, at once but for what may be the start of a marker, white space before
// it, and calls (at most kMaxCallBytes). Used by one thread.
class ReplyParser {
 public:
  explicit ReplyParser(const ReplyOptions& options);

  // The events of the next piece. It may end anywhere, inside a character too.
  std::vector<ReplyEvent> Append(std::string_view piece);
  // The last events, kEnd the last of them. Nothing may be appended afterwards.
  std::vector<ReplyEvent> Finish();

 private:
  std::unique_ptr<FormatParser> parser_;
  std::string text_;       // whole characters that the parser has not taken
  std::string truncated_;  // the start of a character
  ReplySink sink_;
};

}  // namespace weft
