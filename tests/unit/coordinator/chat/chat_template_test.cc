#include "coordinator/chat/chat_template.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Source(std::string_view name) {
  const std::filesystem::path data = std::getenv("WEFT_TEST_DATA");
  std::ostringstream text;
  text << std::ifstream(data / "chat" / "templates" / (std::string(name) + ".jinja"),
                        std::ios::binary)
              .rdbuf();
  return text.str();
}

ChatTemplate Make(std::string source, std::string tool_use = "") {
  ChatTemplateOptions options;
  options.source = std::move(source);
  options.tool_use_source = std::move(tool_use);
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  auto made = ChatTemplate::Create(options);
  EXPECT_OK(made);
  return *std::move(made);
}

Json Read(std::string_view text) {
  auto json = ParseJson(text, {});
  EXPECT_OK(json) << text;
  return json.value_or(Json());
}

constexpr std::string_view kTools = R"([{"type": "function", "function": {"name": "get_weather",
  "description": "Weather", "parameters": {"type": "object", "properties":
  {"place": {"type": "string"}}, "required": ["place"]}}}])";
constexpr std::string_view kCalls = R"([{"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "call00001", "type": "function",
    "function": {"name": "get_weather", "arguments": "{\"place\": \"Bonn\", \"n\": 1}"}}]},
  {"role": "tool", "tool_call_id": "call00001", "content": "rain"},
  {"role": "tool", "tool_call_id": "call00001", "content": "wind"}])";

absl::StatusOr<std::string> Render(const ChatTemplate& chat, std::string_view messages,
                                   std::string_view tools = "null",
                                   std::string_view variables = "{}") {
  ChatRequest request;
  request.messages = Read(messages);
  request.tools = Read(tools);
  request.variables = Read(variables);
  request.now.tm_year = 124;
  request.now.tm_mon = 6;
  request.now.tm_mday = 26;
  return chat.Render(request);
}

TEST(ChatTemplate, WithoutTemplate_IsChatMl) {
  const ChatTemplate chat = Make("");
  EXPECT_EQ(
      *Render(chat, R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}])"),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
      "<|im_start|>assistant\n");
}

TEST(ChatTemplate, Capabilities_AreThoseOfEachFormat) {
  const struct {
    std::string_view name, capabilities;
  } kCases[] = {
      {"chatml", "system, text"},
      {"llama2", "system, text"},
      {"llama3_tools", "system, text, tools, calls with objects, null content, answers of tools"},
      {"mistral_tools",
       "system, text, tools, calls with objects, parallel calls, null content, answers of tools"},
      {"gemma", "system, text, parts"},
      {"qwen3",
       "system, text, tools, calls with objects, parallel calls, null content, answers of tools"},
      {"deepseek",
       "system, text, calls with objects, parallel calls, null content, answers of tools"},
      {"harmony", "system, text, tools, calls with objects, null content, answers of tools"},
      {"phi_mini", "system, text"},
      {"command_r",
       "system, text, tools, calls with objects, parallel calls, null content, answers of tools"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(CapabilitiesText(Make(Source(test.name)).capabilities(false)), test.capabilities)
        << test.name;
  }
}

TEST(ChatTemplate, SystemRole_RefusedOrDropped_GoesToTheFirstUser) {
  constexpr std::string_view kMessages = R"([{"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"},
    {"role": "user", "content": "Bye"}])";
  const ChatTemplate refusing = Make(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}");
  EXPECT_FALSE(refusing.capabilities(false).system_role);
  EXPECT_EQ(*Render(refusing, kMessages), "[user:Be brief.\n\nHi][assistant:Yo][user:Bye]");
  const ChatTemplate dropping = Make(
      "{% for m in messages if m.role != 'system' %}[{{ m.role }}:{{ m.content }}]{% endfor %}");
  EXPECT_EQ(*Render(dropping, kMessages), "[user:Be brief.\n\nHi][assistant:Yo][user:Bye]");
  EXPECT_EQ(*Render(dropping, R"([{"role": "developer", "content": "D"}])"), "[user:D]");
}

TEST(ChatTemplate, ContentParts_JoinedOrWrapped) {
  constexpr std::string_view kMessages = R"([{"role": "user", "content":
    [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}])";
  EXPECT_THAT(*Render(Make(""), kMessages), HasSubstr("user\none\ntwo<|im_end|>"));
  EXPECT_THAT(*Render(Make(Source("gemma")), kMessages), HasSubstr("user\nonetwo<end_of_turn>"));
  const ChatTemplate only_parts =
      Make("{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}");
  EXPECT_FALSE(only_parts.capabilities(false).text_content);
  EXPECT_EQ(*Render(only_parts, R"([{"role": "user", "content": "hello"}])"), "<hello>");
  EXPECT_THAT(
      Render(Make(""), R"([{"role": "user", "content": [{"type": "image_url", "url": "x"}]}])"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("messages[0].content[0]")));
}

TEST(ChatTemplate, ToolsWithoutSupport_StandInTheSystemText) {
  const std::string text = *Render(Make(""), kCalls, kTools);
  EXPECT_THAT(text, HasSubstr("<|im_start|>system\nYou may call functions."));
  EXPECT_THAT(text, HasSubstr("<tools>\n{\"type\": \"function\", \"function\": {\"name\": "
                              "\"get_weather\""));
  EXPECT_THAT(text, HasSubstr("assistant\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                              "{\"place\": \"Bonn\", \"n\": 1}}\n</tool_call><|im_end|>"));
  // Without a role for answers both come from the user, in one message.
  const std::string phi = *Render(Make(Source("phi_mini")), kCalls, kTools);
  EXPECT_THAT(phi, HasSubstr("<|user|>\n<tool_response>\nrain\n</tool_response>\n"
                             "<tool_response>\nwind\n</tool_response><|end|>"));
}

TEST(ChatTemplate, Arguments_AreWhatTheTemplateWants) {
  EXPECT_THAT(*Render(Make(Source("qwen3")), kCalls, kTools),
              HasSubstr("{\"name\": \"get_weather\", \"arguments\": {\"place\": \"Bonn\", "
                        "\"n\": 1}}"));
  const ChatTemplate wants_text = Make(
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name + '(' + c.function.arguments + ')' }}{% endfor %}{% endfor %}");
  EXPECT_FALSE(wants_text.capabilities(false).object_arguments);
  EXPECT_THAT(*Render(wants_text, kCalls, "null"),
              HasSubstr("get_weather({\"place\": \"Bonn\", \"n\": 1})"));
  EXPECT_THAT(*Render(wants_text, R"([{"role": "assistant", "tool_calls":
      [{"function": {"name": "f", "arguments": {"a": [1, "é"]}}}]}])"),
              HasSubstr("f({\"a\": [1, \"é\"]})"));
}

TEST(ChatTemplate, ToolUseTemplate_IsTakenWithTools) {
  const ChatTemplate chat = Make("plain", "with {{ tools[0].function.name }}{{ messages|length }}");
  EXPECT_EQ(*Render(chat, R"([{"role": "user", "content": "x"}])"), "plain");
  EXPECT_EQ(*Render(chat, R"([{"role": "user", "content": "x"}])", "[]"), "plain");
  EXPECT_THAT(*Render(chat, R"([{"role": "user", "content": "x"}])", kTools),
              HasSubstr("with get_weather"));
}

TEST(ChatTemplate, Variables_PassButCannotReplaceOurs) {
  const ChatTemplate qwen = Make(Source("qwen3"));
  constexpr std::string_view kMessages = R"([{"role": "user", "content": "x"}])";
  EXPECT_THAT(*Render(qwen, kMessages, "null", R"({"enable_thinking": false})"),
              HasSubstr("<think>\n\n</think>"));
  EXPECT_THAT(*Render(qwen, kMessages, "null", R"({"messages": [], "bos_token": "evil"})"),
              HasSubstr("user\nx"));
}

TEST(ChatTemplate, Reasoning_ReachesTheTemplateUnderItsName) {
  const std::string text = *Render(Make(Source("harmony")), R"([{"role": "user", "content": "x"},
      {"role": "assistant", "content": "", "reasoning_content": "mull", "tool_calls":
      [{"function": {"name": "f", "arguments": "{}"}}]}])");
  EXPECT_THAT(text, HasSubstr("<|channel|>analysis<|message|>mull<|end|>"));
}

TEST(ChatTemplate, Bos_IsSeenInTheText) {
  const ChatTemplate llama = Make(Source("llama3_tools"));
  EXPECT_TRUE(llama.BeginsWithBos(*Render(llama, R"([{"role": "user", "content": "x"}])")));
  const ChatTemplate chatml = Make("");
  EXPECT_FALSE(chatml.BeginsWithBos(*Render(chatml, R"([{"role": "user", "content": "x"}])")));
}

TEST(ChatTemplate, Errors_NameTheirPlace) {
  ChatTemplateOptions options;
  options.source = "a\n{% if %}";
  EXPECT_THAT(
      ChatTemplate::Create(options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tokenizer.chat_template: line 2: ")));
  options.source = "";
  options.tool_use_source = "{{";
  EXPECT_THAT(ChatTemplate::Create(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                                      HasSubstr("chat_template.tool_use: line")));
  EXPECT_THAT(Render(Make(Source("llama2")), R"([{"role": "assistant", "content": "x"}])"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("chat template: line 1: the template refuses: Roles must")));
  const std::string_view kBad[] = {"5",
                                   "[5]",
                                   "[{}]",
                                   R"([{"role": 5}])",
                                   R"([{"role": "user", "content": 5}])",
                                   R"([{"role": "user", "content": [5]}])",
                                   R"([{"role": "a", "tool_calls": 5}])",
                                   R"([{"role": "a", "tool_calls": [5]}])",
                                   R"([{"role": "a", "tool_calls": [{"function": 5}]}])",
                                   R"([{"role": "a", "tool_calls": [{"function": {"name": 5}}]}])"};
  for (const std::string_view bad : kBad) {
    EXPECT_THAT(Render(Make(""), bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("messages")))
        << bad;
  }
  EXPECT_THAT(Render(Make(""), "[]", R"({"a": 1})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tools")));
}

TEST(JsonLine, HasPythonsLayout) {
  EXPECT_EQ(JsonLine(Read(R"({"b":[1,2.5,"[[\"\u00e9"],"a":{},"c":[],"d":null})")),
            "{\"b\": [1, 2.5, \"[[\\\"\xC3\xA9\"], \"a\": {}, \"c\": [], \"d\": null}");
}

}  // namespace
}  // namespace weft
