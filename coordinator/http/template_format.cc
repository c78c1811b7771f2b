#include "coordinator/http/template_format.h"

#include <climits>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_grammar.h"
#include "coordinator/chat/reply_parser.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/json_rules.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/http/api_error.h"
#include "coordinator/http/grammar_constraints.h"

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

// What the text of the answer must be.
absl::StatusOr<GrammarElement> AnswerRule(const GenerationFields& fields, GrammarBuilder& builder) {
  if (fields.format == OutputFormat::kGrammar) {
    absl::StatusOr<GrammarElement> rule = AddGbnf(fields.grammar, builder);
    return rule.ok() ? rule : OfField("grammar", rule.status());
  }
  if (fields.format == OutputFormat::kJsonObject) return JsonRules(builder).Object();
  std::vector<std::string> ignored;
  absl::StatusOr<GrammarElement> rule = AddSchema(fields.schema, builder, ignored);
  return rule.ok() ? rule : OfField("response_format", rule.status());
}

}  // namespace

// Whatever clients write is text: only the template speaks in control tokens.
absl::StatusOr<GuardedText> TemplateFormat::RenderGuarded(ChatRequest request) const {
  ASSIGN_OR_RETURN(
      const TextGuard guard,
      TextGuard::Create(tokenizer_, {&request.messages, &request.tools, &request.variables}));
  request.messages = guard.Guard(request.messages);
  request.tools = guard.Guard(request.tools);
  request.variables = guard.Guard(request.variables);
  ASSIGN_OR_RETURN(const std::string text, template_.Render(request));
  return guard.TakeOut(text);
}

absl::StatusOr<ChatPrompt> TemplateFormat::Prompt(const ChatBody& body) const {
  ChatRequest request;
  request.messages = body.messages;
  if (!body.tools.empty() && body.tool_choice.kind != ToolChoice::Kind::kNone) {
    request.tools = body.tools;
  }
  request.variables = body.template_arguments;
  request.now = CivilTime();
  ASSIGN_OR_RETURN(const GuardedText guarded, RenderGuarded(request));
  const std::string& text = guarded.text;
  ChatPrompt prompt;
  const EncodeOptions encode{.add_special = !template_.BeginsWithBos(text), .plain = guarded.plain};
  ASSIGN_OR_RETURN(prompt.tokens, tokenizer_.Encode(text, encode));
  ReplyOptions reply;
  reply.with_tools = !request.tools.empty();
  reply.format = DetectReplyFormat(template_.source(reply.with_tools));
  reply.thoughts_opened = OpensThoughts(text);
  prompt.special_tokens = WantsMarkers(reply);
  ASSIGN_OR_RETURN(prompt.make_constraint, Constraint(body, reply));
  prompt.make_reader = [reply, most_calls = body.parallel_tool_calls ? INT_MAX : 1] {
    return std::make_unique<ParserReader>(reply, most_calls);
  };
  return prompt;
}

absl::StatusOr<ConstraintMaker> TemplateFormat::Constraint(const ChatBody& body,
                                                           const ReplyOptions& reply) const {
  using Choice = ToolChoice::Kind;
  const bool must_call =
      body.tool_choice.kind == Choice::kRequired || body.tool_choice.kind == Choice::kNamed;
  const bool free_text = body.generation.format == OutputFormat::kText;
  if (free_text && !must_call) return ConstraintMaker();
  ReplyBounds bounds;
  if (!must_call) {
    bounds.answer = [&](GrammarBuilder& builder) { return AnswerRule(body.generation, builder); };
  }
  if (reply.with_tools && (must_call || reply.format.calls != CallFormat::kNone)) {
    bounds.tools = &body.tools;
  }
  bounds.function = body.tool_choice.name;
  bounds.several_calls = body.parallel_tool_calls;
  absl::StatusOr<Grammar> made = MakeReplyGrammar(reply, bounds, tokenizer_);
  if (made.ok()) return FollowGrammar(*std::move(made), trie_);
  // Rules have names of ours, which say nothing to the client.
  if (!absl::StrContains(made.status().message(), "can never be completed")) return made.status();
  return absl::InvalidArgumentError(absl::StrCat(must_call ? "tools" : "response_format",
                                                 ": no text can ever be complete, the schema "
                                                 "asks for itself without an end"));
}

}  // namespace weft
