#include "coordinator/http/chat_schema.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/schema_cases.h"

namespace weft {
namespace {

absl::StatusOr<ChatBody> Read(const std::string& body) {
  return ReadChatBody(body, SamplerOptions());
}

// A body with one message of a user, and more fields.
std::string With(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "hi"}], )" + fields + "}";
}

// A body with this message.
std::string Message(const std::string& message) { return R"({"messages": [)" + message + "]}"; }

TEST(ChatSchema, MessagesWithParts_BecomeTexts) {
  ASSERT_OK_AND_ASSIGN(const ChatBody request, Read(R"({"messages": [
      {"role": "developer", "content": "Be brief."},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
       "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "42"},
      {"role": "assistant", "content": "", "reasoning_content": "hm"}]})"));
  ASSERT_EQ(request.messages.size(), 5);
  EXPECT_EQ(request.messages[1].dump(), R"({"role":"user","content":"a\nb"})");
  EXPECT_EQ(request.messages[2]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(request.messages[4]["reasoning_content"], "hm");
}

TEST(ChatSchema, ToolsAndChoice_AreRead) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f",
      "description": "d", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}])";
  ASSERT_OK_AND_ASSIGN(ChatBody request, Read(With(tools)));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_TRUE(request.parallel_tool_calls);
  EXPECT_EQ(request.tools[0]["function"]["parameters"]["properties"].dump(), R"({"z":{},"a":{}})");
  EXPECT_EQ(Read(With(tools + R"(, "tool_choice": "none")"))->tool_choice.kind,
            ToolChoice::Kind::kNone);
  EXPECT_EQ(Read(With(tools + R"(, "tool_choice": "required")"))->tool_choice.kind,
            ToolChoice::Kind::kRequired);
  ASSERT_OK_AND_ASSIGN(request, Read(With(tools + R"(, "parallel_tool_calls": false, "tool_choice":
      {"type": "function", "function": {"name": "f"}})")));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::kNamed);
  EXPECT_EQ(request.tool_choice.name, "f");
  EXPECT_FALSE(request.parallel_tool_calls);
}

TEST(ChatSchema, LogProbabilitiesAndLimits_AreRead) {
  EXPECT_EQ(Read(With(R"("logprobs": false)"))->generation.log_probabilities, -1);
  EXPECT_EQ(Read(With(R"("logprobs": true)"))->generation.log_probabilities, 0);
  EXPECT_EQ(Read(With(R"("logprobs": true, "top_logprobs": 5)"))->generation.log_probabilities, 5);
  EXPECT_EQ(Read(With(R"("max_tokens": 5)"))->generation.max_tokens, 5);
  EXPECT_EQ(Read(With(R"("max_tokens": 5, "max_completion_tokens": 6)"))->generation.max_tokens, 6);
  ASSERT_OK_AND_ASSIGN(
      const ChatBody request,
      Read(With(R"("reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false},
                   "modalities": ["text"], "store": false, "metadata": {}, "service_tier": "auto")")));
  EXPECT_EQ(request.template_arguments.dump(),
            R"({"enable_thinking":false,"reasoning_effort":"low"})");
}

TEST(ChatSchema, AnyValueInAnyPlace_IsReadOrRefused) {
  ReadWithEachValueReplaced(
      R"({"messages": [{"role": "system", "content": "a", "name": "n"},
          {"role": "user", "content": [{"type": "text", "text": "b"}]},
          {"role": "assistant", "content": "c", "reasoning_content": "r", "tool_calls":
            [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
          {"role": "tool", "tool_call_id": "1", "content": "42"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d",
          "parameters": {"type": "object", "properties": {"z": {}}}}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": false, "logprobs": true, "top_logprobs": 5, "max_tokens": 5, "n": 2,
        "stop": ["x"], "stream": true, "stream_options": {"include_usage": true}, "temperature": 1,
        "top_p": 0.5, "seed": 1, "logit_bias": {"1": 2}, "response_format": {"type": "json_schema",
          "json_schema": {"name": "s", "schema": {"type": "object"}}},
        "chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low"})",
      Read);
}

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ChatSchema, WrongBodies_NameTheField) {
  CheckRefusals(
      {
          {"", "", "line 1"},
          {"null", "", "not a JSON object"},
          {"{}", "messages", "is missing"},
          {R"({"messages": {}})", "messages", "want an array"},
          {R"({"messages": []})", "messages", "there are none"},
          {R"({"messages": ["hi"]})", "messages[0]", "want an object"},
          {Message(R"({"content": "x"})"), "messages[0].role", "is missing"},
          {Message(R"({"role": "king", "content": "x"})"), "messages[0].role", "want system"},
          {Message(R"({"role": "user"})"), "messages[0].content", "is missing"},
          {Message(R"({"role": "user", "content": null})"), "messages[0].content", "is missing"},
          {Message(R"({"role": "system", "content": null})"), "messages[0].content", "is missing"},
          {Message(R"({"role": null, "content": "x"})"), "messages[0].role", "is missing"},
          {R"({"messages": null})", "messages", "is missing"},
          {Message(R"({"role": "user", "content": 5})"), "messages[0].content", "want a text"},
          {Message(R"({"role": "user", "content": [5]})"), "messages[0].content[0]",
           "want an object"},
          {Message(R"({"role": "user", "content": [{"type": "text"}]})"),
           "messages[0].content[0].text", "is missing"},
          {Message(R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})"),
           "messages[0].content[0].type", "cannot do image_url", 501},
          {Message(R"({"role": "user", "content": "x", "nme": "y"})"), "messages[0]",
           "unknown key 'nme'"},
          {Message(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]})"),
           "messages[0].tool_calls[0].function.arguments", "is missing"},
          {Message(
               R"({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]})"),
           "messages[0].tool_calls[0].function.arguments", "want a text"},
          {Message(R"({"role": "assistant", "content": "x", "audio": {"id": "1"}})"),
           "messages[0].audio", "cannot do audio", 501},
          {With(R"("tools": 5)"), "tools", "want an array"},
          {With(R"("tools": [{"type": "web_search"}])"), "tools[0].type", "cannot do", 501},
          {With(R"("tools": [{"type": "function", "function": {}}])"), "tools[0].function.name",
           "is missing"},
          {With(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}])"),
           "tools[0].function.parameters", "want an object"},
          {With("\"tools\": " + Nested(3000)), "", "inside each other"},
          {With(R"("tool_choice": "maybe")"), "tool_choice", "want none"},
          {With(R"("tool_choice": "required")"), "tool_choice", "no tools"},
          {With(R"("tool_choice": {"type": "function", "function": {"name": "g"}})"),
           "tool_choice.function.name", "not among"},
          {With(R"("top_logprobs": 3)"), "top_logprobs", "only with logprobs"},
          {With(R"("logprobs": true, "top_logprobs": 21)"), "top_logprobs", "to 20"},
          {With(R"("logprobs": 3)"), "logprobs", "true or false"},
          {With(R"("chat_template_kwargs": 3)"), "chat_template_kwargs", "want an object"},
          {With(R"("functions": [])"), "functions", "cannot do", 501},
          {With(R"("modalities": ["text", "audio"])"), "modalities", "cannot do", 501},
          {With(R"("max_completion_tokens": 0)"), "max_completion_tokens", "from 1"},
          {With(R"("prompt": "x")"), "prompt", "knows no such field"},
      },
      Read);
}

}  // namespace
}  // namespace weft
