#include "coordinator/http/template_format.h"

#include <climits>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_parser.h"

namespace weft {
namespace {

std::tm CivilTime() {
  const std::time_t seconds = UnixSeconds();
  std::tm civil = {};
  ::localtime_r(&seconds, &civil);
  return civil;
}

class ParserReader final : public ReplyReader {
 public:
  // `most_calls`: those after them are left out.
  ParserReader(const ReplyOptions& options, int most_calls)
      : parser_(options), most_calls_(most_calls) {}

  std::vector<ReplyEvent> Append(std::string_view text) override {
    return Cut(parser_.Append(text));
  }
  std::vector<ReplyEvent> Finish() override { return Cut(parser_.Finish()); }

 private:
  std::vector<ReplyEvent> Cut(std::vector<ReplyEvent> events) const {
    std::erase_if(events, [this](const ReplyEvent& event) {
      const bool of_call = event.kind == ReplyEvent::Kind::kCallBegin ||
                           event.kind == ReplyEvent::Kind::kCallArguments;
      return of_call && event.index >= most_calls_;
    });
    return events;
  }

  ReplyParser parser_;
  const int most_calls_;
};

// Whether the parser has to see control tokens, as text.
bool WantsMarkers(const ReplyOptions& options) {
  return options.format.think || options.format.calls == CallFormat::kHarmony ||
         (options.with_tools && options.format.calls != CallFormat::kNone);
}

}  // namespace

absl::StatusOr<ChatPrompt> TemplateFormat::Prompt(const ChatBody& body) const {
  ChatRequest request;
  request.messages = body.messages;
  if (!body.tools.empty() && body.tool_choice.kind != ToolChoice::Kind::kNone) {
    request.tools = body.tools;
  }
  request.variables = body.template_arguments;
  request.now = CivilTime();
  ASSIGN_OR_RETURN(const std::string text, template_.Render(request));
  ChatPrompt prompt;
  ASSIGN_OR_RETURN(prompt.tokens,
                   tokenizer_.Encode(text, {.add_special = !template_.BeginsWithBos(text)}));
  ReplyOptions reply;
  reply.with_tools = !request.tools.empty();
  reply.format = DetectReplyFormat(template_.source(reply.with_tools));
  reply.thoughts_opened = OpensThoughts(text);
  prompt.special_tokens = WantsMarkers(reply);
  prompt.make_reader = [reply, most_calls = body.parallel_tool_calls ? INT_MAX : 1] {
    return std::make_unique<ParserReader>(reply, most_calls);
  };
  return prompt;
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> TemplateFormat::Constraint(
    const ChatBody& body) const {
  if (body.tool_choice.kind == ToolChoice::Kind::kRequired ||
      body.tool_choice.kind == ToolChoice::Kind::kNamed) {
    return absl::UnimplementedError("tool_choice: this server cannot make a model call a tool");
  }
  return std::unique_ptr<TokenConstraint>();
}

}  // namespace weft
