#include "coordinator/http/template_format.h"

#include <string>
#include <utility>
#include <vector>

#include "coordinator/grammar/tokenizer_trie.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/fake_engine.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr char kSource[] =
    "{% for m in messages %}{% if m.role == 'king' %}{{ raise_exception('no kings') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{{ mood }}{% if add_generation_prompt %}[assistant]{% endif %}";

class TemplateFormatTest : public testing::Test {
 protected:
  TemplateFormatTest() : tokenizer_(DemoTokenizer()) {}

  // The text of the prompt for a body.
  absl::StatusOr<std::string> Prompt(const std::string& body, const std::string& source) {
    ChatTemplateOptions options;
    options.source = source;
    absl::StatusOr<ChatTemplate> made = ChatTemplate::Create(options);
    if (!made.ok()) return made.status();
    const TemplateFormat format(*std::move(made), *tokenizer_, MakeTokenTrie(*tokenizer_));
    absl::StatusOr<ChatBody> chat = ReadChatBody(body, SamplerOptions());
    if (!chat.ok()) return chat.status();
    absl::StatusOr<ChatPrompt> prompt = format.Prompt(*chat);
    if (!prompt.ok()) return prompt.status();
    return tokenizer_->Decode(prompt->tokens, DecodeOptions{.remove_special = true});
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(TemplateFormatTest, Prompts_AreWhatTheTemplateSays) {
  const std::string body =
      R"({"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
          "chat_template_kwargs": {"mood": "calm"}})";
  EXPECT_EQ(*Prompt(body, kSource), "[system]be brief[user]hicalm[assistant]");
}

TEST_F(TemplateFormatTest, Tools_AreHiddenByToolChoiceNone) {
  const std::string body =
      R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function",
          "function": {"name": "f", "parameters": {}}}])";
  EXPECT_THAT(*Prompt(body + "}", kSource), HasSubstr(R"("name": "f")"));
  EXPECT_THAT(*Prompt(body + R"(, "tool_choice": "none"})", kSource),
              testing::Not(HasSubstr(R"("name": "f")")));
}

TEST_F(TemplateFormatTest, Readers_TakeThoughtsAndCallsApart) {
  const std::string body =
      R"({"messages": [{"role": "user", "content": "hi"}], "parallel_tool_calls": false,
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]})";
  ChatTemplateOptions options;
  options.source = std::string(kSource) + "<think>";
  ASSERT_OK_AND_ASSIGN(ChatTemplate made, ChatTemplate::Create(options));
  const TemplateFormat format(std::move(made), *tokenizer_, MakeTokenTrie(*tokenizer_));
  ASSERT_OK_AND_ASSIGN(const ChatBody chat, ReadChatBody(body, SamplerOptions()));
  ASSERT_OK_AND_ASSIGN(const ChatPrompt prompt, format.Prompt(chat));
  EXPECT_TRUE(prompt.special_tokens);
  const std::unique_ptr<ReplyReader> reader = prompt.make_reader();
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>)";
  std::vector<ReplyEvent> events = reader->Append("hm</think>" + call + call);
  for (ReplyEvent& event : reader->Finish()) events.push_back(std::move(event));
  using Kind = ReplyEvent::Kind;
  EXPECT_THAT(events, testing::ElementsAre(ReplyEvent{Kind::kReasoning, "hm", 0},
                                           ReplyEvent{Kind::kCallBegin, "f", 0},
                                           ReplyEvent{Kind::kCallArguments, R"({"x": 1})", 0},
                                           ReplyEvent{Kind::kEnd, "", 0}));
}

TEST_F(TemplateFormatTest, ChoicesOfToolsAndForms_MakeConstraints) {
  ChatTemplateOptions options;
  options.source = kSource;
  ASSERT_OK_AND_ASSIGN(ChatTemplate made, ChatTemplate::Create(options));
  const TemplateFormat format(std::move(made), *tokenizer_, MakeTokenTrie(*tokenizer_));
  const std::string start =
      R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function",
          "function": {"name": "f", "parameters": {"type": "object"}}}], "tool_choice": )";
  const auto prompt = [&](const std::string& rest) -> absl::StatusOr<ChatPrompt> {
    const absl::StatusOr<ChatBody> chat = ReadChatBody(start + rest + "}", SamplerOptions());
    if (!chat.ok()) return chat.status();
    return format.Prompt(*chat);
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> open, tokenizer_->Encode("<", {false, false}));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> brace, tokenizer_->Encode("{", {false, false}));
  struct Case {
    const char* rest;
    bool call;
    bool json;
  };
  for (const Case& c :
       {Case{R"("required")", true, false},
        Case{R"({"type": "function", "function": {"name": "f"}})", true, false},
        Case{R"("auto", "response_format": {"type": "json_object"})", true, true},
        Case{R"("none", "response_format": {"type": "json_object"})", false, true},
        Case{R"("required", "response_format": {"type": "json_object"})", true, false}}) {
    SCOPED_TRACE(c.rest);
    ASSERT_OK_AND_ASSIGN(const ChatPrompt made_prompt, prompt(c.rest));
    ASSERT_TRUE(made_prompt.make_constraint);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TokenConstraint> constraint,
                         made_prompt.make_constraint());
    EXPECT_EQ(*constraint->Allows(open[0]), c.call);
    EXPECT_EQ(*constraint->Allows(brace[0]), c.json);
  }
  ASSERT_OK_AND_ASSIGN(const ChatPrompt free, prompt(R"("auto")"));
  EXPECT_FALSE(free.make_constraint);
  EXPECT_THAT(prompt(R"("auto", "response_format": {"type": "json_schema", "json_schema":
                        {"name": "x", "schema": {"not": {}}}})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("response_format: ")));
}

TEST_F(TemplateFormatTest, WhatTheTemplateRefuses_IsTheClientsError) {
  EXPECT_THAT(Prompt(R"({"messages": [{"role": "user", "content": "hi"}]})",
                     "{% if messages[0].content == 'hi' %}{{ raise_exception('not so short') }}"
                     "{% endif %}{{ messages[0].content }}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not so short")));
}

}  // namespace
}  // namespace weft
