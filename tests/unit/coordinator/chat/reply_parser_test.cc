#include "coordinator/chat/reply_parser.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "coordinator/chat/chat_template.h"
#include "coordinator/chat/reply_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/chat/reply_check.h"

namespace weft {
namespace {

ReplyOptions Options(CallFormat calls, bool think = false, bool opened = false) {
  return {{calls, think}, true, opened};
}

std::vector<size_t> EveryByte(std::string_view text) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < text.size(); ++i) cuts.push_back(i);
  return cuts;
}

// The reply as a whole, byte by byte, and cut at each position.
void Check(const ReplyOptions& options, std::string_view text, std::string_view wanted) {
  ASSERT_EQ(ReplyTranscript(options, text), wanted) << text;
  EXPECT_EQ(ReplyTranscript(options, text, EveryByte(text)), wanted) << text;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(ReplyTranscript(options, text, {cut}), wanted) << text << " cut at " << cut;
  }
}

TEST(ReplyParser, Plain_StaysAsItIs) {
  const ReplyOptions plain = Options(CallFormat::kNone);
  Check(plain,
        "Gr\xC3\xBC\xC3\x9F"
        "e \xF0\x9F\x8C\x8D <tool_call> \n",
        "C(Gr\xC3\xBC\xC3\x9F"
        "e \xF0\x9F\x8C\x8D <tool_call> \n).");
  Check(plain, "", ".");
  Check(plain, " \n", "C( \n).");
  // Bytes that are no text are the caller's business, and are not lost.
  Check(plain,
        "a\xFF"
        "b\xC3",
        "C(a\xFF"
        "b\xC3).");
  ReplyOptions without_tools = Options(CallFormat::kHermes);
  without_tools.with_tools = false;
  Check(without_tools, "<tool_call>{\"name\": \"f\"}</tool_call>",
        "C(<tool_call>{\"name\": \"f\"}</tool_call>).");
}

TEST(ReplyParser, Think_ComesApart) {
  const ReplyOptions think = Options(CallFormat::kNone, true);
  const ReplyOptions opened = Options(CallFormat::kNone, true, true);
  Check(think, "<think>\nadd \n them\n</think>\n\nIt is 4.\n", "R(add \n them)C(It is 4.\n).");
  Check(think, "\n <think>\n\n</think>\n\nIt is 4.", "C(It is 4.).");
  Check(think, "No <think> here </think>", "C(No <think> here </think>).");
  Check(think, "<thin", "C(<thin).");
  Check(think, "<think>without end <", "R(without end <).");
  Check(opened, "\nadd\n</think>\n\n4", "R(add)C(4).");
  Check(opened, "<think>\nagain\n</think>4 </think>", "R(again)C(4 </think>).");
  Check(opened, "<thinner", "R(<thinner).");
  EXPECT_TRUE(OpensThoughts("<|Assistant|><think>\n"));
  EXPECT_FALSE(OpensThoughts("<think>\n\n</think>\n\n"));
  EXPECT_FALSE(OpensThoughts(""));
}

TEST(ReplyParser, Hermes_Calls) {
  const ReplyOptions hermes = Options(CallFormat::kHermes, true);
  Check(hermes,
        "<think>use it</think>\n\nLooking.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
        "[1, \"</tool_call> \\\" \xC3\xA4\"]}}\n</tool_call>\n<tool_call>{\"name\":\"g\"}"
        "</tool_call>\n",
        "R(use it)C(Looking.)F0:f({\"a\": [1, \"</tool_call> \\\" \xC3\xA4\"]})F1:g({}).");
  Check(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call> done ",
        "F0:f({\"a\": 1})C(done ).");
  // The end of the reply may stand for the end of the call.
  Check(hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n", "F0:f({}).");
  // Nothing that is no call gets lost.
  Check(hermes, "a <tool_call>{\"name\": 5}</tool_call> b",
        "C(a <tool_call>{\"name\": 5}</tool_call> b).");
  Check(hermes, "<tool_call>{\"name\": \"f\", ", "C(<tool_call>{\"name\": \"f\", ).");
  Check(hermes, "<tool_call>{\"name\": \"f g\"}</tool_call>",
        "C(<tool_call>{\"name\": \"f g\"}</tool_call>).");
  Check(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
        "C(<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>).");
  Check(hermes, "<tool_call><tool_call>{\"name\": \"f\"}</tool_call>",
        "C(<tool_call><tool_call>{\"name\": \"f\"}</tool_call>).");
  Check(hermes, "<tool_cal", "C(<tool_cal).");
}

TEST(ReplyParser, Llama_Calls) {
  const ReplyOptions llama = Options(CallFormat::kLlama);
  Check(llama, "{\"name\": \"f\", \"parameters\": {\"a\": \"}\\\"{\", \"b\": {\"c\": [1]}}}",
        "F0:f({\"a\": \"}\\\"{\", \"b\": {\"c\": [1]}}).");
  Check(llama,
        " <|python_tag|>{ \"type\": \"function\", \"name\": \"f\", \"parameters\": {}} ; "
        "{\"name\": \"g\", \"parameters\": {\"x\": 1}}\n",
        "F0:f({})F1:g({\"x\": 1}).");
  Check(llama, "<|python_tag|>search.call(query=\"a, \\\"b\\\"\", n=\"2\")",
        "F0:search({\"query\": \"a, \\\"b\\\"\", \"n\": \"2\"}).");
  Check(llama, "{\"answer\": {\"name\": 1}}", "C({\"answer\": {\"name\": 1}}).");
  Check(llama, "{\"name\": \"Ada\", \"born\": [1815}", "C({\"name\": \"Ada\", \"born\": [1815}).");
  Check(llama, "{\"name\": \"f\"", "C({\"name\": \"f\").");
  Check(llama, "<|python_tag|>print(1)", "C(<|python_tag|>print(1)).");
  Check(llama, "<|python_tag|>", "C(<|python_tag|>).");
  Check(llama, "<|python_", "C(<|python_).");
  Check(llama, " \nIt is {\"name\": \"f\"}", "C( \nIt is {\"name\": \"f\"}).");
  Check(llama, "{\"name\": \"f\", \"parameters\": {}} and so on", "F0:f({})C(and so on).");
  Check(llama, "{", "C({).");
}

TEST(ReplyParser, Harmony_ChannelsAndCalls) {
  const ReplyOptions harmony = Options(CallFormat::kHarmony);
  Check(harmony,
        "<|channel|>analysis<|message|>Let me see < this.<|end|><|start|>assistant<|channel|>final"
        "<|message|>It is 4.<|return|>",
        "R(Let me see < this.)C(It is 4.).");
  Check(harmony,
        "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.get_weather <|constrain|>json<|message|>{\"place\": \"K\xC3\xB6ln\"}"
        "<|call|>",
        "R(Need it.)F0:get_weather({\"place\": \"K\xC3\xB6ln\"}).");
  Check(harmony, " to=functions.f<|channel|>commentary json<|message|>{}", "F0:f({}).");
  Check(harmony,
        "<|channel|>commentary<|message|>First I look.<|end|>\n<|start|>assistant to="
        "functions.f<|channel|>commentary<|message|><|call|>",
        "C(First I look.)F0:f({}).");
  Check(harmony, "<|channel|>commentary to=functions.f<|message|>{\"a\": <|call|>",
        "C(<|channel|>commentary to=functions.f<|message|>{\"a\": ).");
  Check(harmony, "<|channel|>analysis to=python<|message|>print(1)<|call|>",
        "C(<|channel|>analysis to=python<|message|>print(1)).");
  Check(harmony, "Just text, to=nobody.", "C(Just text, to=nobody.).");
  Check(harmony, "<|channel|>final no message", "C(<|channel|>final no message).");
  Check(harmony, "<|chan", "C(<|chan).");
  Check(harmony, "<|channel|>final<|message|>", ".");
  // The text of a marker is no marker inside the quotes of arguments, where those are closed.
  Check(harmony,
        "<|channel|>commentary to=functions.f<|message|>{\"a\": \"<|end|> \\\"<|call|>\"}<|call|>"
        "<|start|>assistant<|channel|>final<|message|>4",
        "F0:f({\"a\": \"<|end|> \\\"<|call|>\"})C(4).");
  Check(harmony,
        "<|channel|>commentary to=functions.f<|message|>{\"a\": \"<|call|>"
        "<|start|>assistant<|channel|>final<|message|>4",
        "C(<|channel|>commentary to=functions.f<|message|>{\"a\": \"4).");
  // A message that lacks its end.
  Check(harmony, "<|channel|>analysis<|message|>hm<|channel|>final<|message|>4", "R(hm)C(4).");
}

#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"
constexpr char kBegin[] = "<" BAR "tool" LOW "calls" LOW "begin" BAR ">";
constexpr char kEnd[] = "<" BAR "tool" LOW "calls" LOW "end" BAR ">";
constexpr char kCallBegin[] = "<" BAR "tool" LOW "call" LOW "begin" BAR ">";
constexpr char kCallEnd[] = "<" BAR "tool" LOW "call" LOW "end" BAR ">";
constexpr char kSep[] = "<" BAR "tool" LOW "sep" BAR ">";

TEST(ReplyParser, DeepSeek_Calls) {
  const ReplyOptions deepseek = Options(CallFormat::kDeepSeek, true, true);
  Check(deepseek,
        absl::StrCat("mull\n</think>\n\nLooking.\n", kBegin, kCallBegin, "function", kSep,
                     "f\n```json\n{\"a\": \"``` <\"}\n```", kCallEnd, "\n", kCallBegin, "function",
                     kSep, "g\n```json\n{}\n```", kCallEnd, kEnd),
        "R(mull)C(Looking.)F0:f({\"a\": \"``` <\"})F1:g({}).");
  const ReplyOptions plain = Options(CallFormat::kDeepSeek);
  Check(plain, absl::StrCat(kBegin, kCallBegin, "f", kSep, "{\"a\": 1}", kCallEnd, kEnd, " and"),
        "F0:f({\"a\": 1})C(and).");
  Check(plain, absl::StrCat(kBegin, kCallBegin, "f", kSep, "{\"a\": 1}"), "F0:f({\"a\": 1}).");
  for (const std::string& lost :
       {absl::StrCat("x ", kBegin), absl::StrCat(kBegin, "words"),
        absl::StrCat(kBegin, kCallBegin, "f", kSep, "{", kCallEnd),
        absl::StrCat(kBegin, kCallBegin, "f", kCallEnd), absl::StrCat(kCallBegin, "f"),
        std::string(kBegin).substr(0, 7)}) {
    Check(plain, lost, absl::StrCat("C(", lost, ")."));
  }
}

TEST(ReplyParser, EndlessCalls_BecomeText) {
  const std::string open = "<tool_call>{\"name\": \"" + std::string(kMaxCallBytes, 'x');
  const std::string text = open + "\"}</tool_call><tool_call>{\"name\": \"f\"}</tool_call>";
  const std::string wanted = "C(" + open + "\"}</tool_call>)F0:f({}).";
  const ReplyOptions hermes = Options(CallFormat::kHermes);
  EXPECT_TRUE(ReplyTranscript(hermes, text) == wanted);
  EXPECT_TRUE(ReplyTranscript(hermes, text, EveryByte(text)) == wanted);
  // Deep and long JSON of a call that closes.
  const std::string deep =
      "<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(50000, '[') +
      std::string(50000, ']') + "}</tool_call>";
  EXPECT_TRUE(ReplyTranscript(hermes, deep) == "C(" + deep + ").");
  const std::string spaces = "a" + std::string(3000, ' ') + "<tool_call>{\"name\": \"f\"}";
  EXPECT_EQ(ReplyTranscript(hermes, spaces), ReplyTranscript(hermes, spaces, EveryByte(spaces)));
}

// Pieces that formats are made of, in any order.
const std::string_view kPieces[] = {"<think>",
                                    "</think>",
                                    "<tool_call>",
                                    "</tool_call>",
                                    "{\"name\": \"f\", \"arguments\": {}}",
                                    "{\"name\": \"g\", \"parameters\": {\"a\": \"b<\"}}",
                                    "<|python_tag|>",
                                    "<|channel|>",
                                    "analysis",
                                    "final",
                                    "commentary to=functions.f",
                                    "<|message|>",
                                    "<|end|>",
                                    "<|start|>",
                                    "<|call|>",
                                    "assistant",
                                    kBegin,
                                    kEnd,
                                    kCallBegin,
                                    kCallEnd,
                                    kSep,
                                    "f",
                                    "{}",
                                    "\n",
                                    "  ",
                                    "<",
                                    "\"",
                                    "\\",
                                    "{",
                                    "}",
                                    ";",
                                    "\xC3\xA4",
                                    "\xF0\x9F\x8C\x8D",
                                    "text ",
                                    "```json\n",
                                    "```",
                                    "function",
                                    "x.call(a=\"b\")",
                                    "<|",
                                    "\xFF"};

TEST(ReplyParser, AnyText_CutAnywhere_GivesTheSame) {
  Random random(TestSeed(1));
  const auto below = [&](size_t bound) { return random.Next() % bound; };
  const uint64_t count = TestCount(20000);
  for (uint64_t i = 0; i < count; ++i) {
    ReplyOptions options = Options(static_cast<CallFormat>(below(5)), below(2) == 0, below(4) == 0);
    options.with_tools = below(8) != 0;
    std::string text;
    for (size_t n = 1 + below(12); n > 0; --n) text += kPieces[below(std::size(kPieces))];
    if (below(20) == 0) text.insert(below(text.size()), std::string(below(1500), ' '));
    std::vector<size_t> cuts;
    for (size_t at = 0; at < text.size(); at += 1 + below(8)) cuts.push_back(at);
    const std::string whole = ReplyTranscript(options, text);
    ASSERT_EQ(ReplyTranscript(options, text, cuts), whole) << text;
    ASSERT_EQ(ReplyTranscript(options, text, EveryByte(text)), whole) << text;
    if (options.format.calls == CallFormat::kNone && !options.format.think &&
        !options.thoughts_opened) {
      ASSERT_EQ(whole, absl::StrCat("C(", text, ")."));
    }
  }
}

TEST(DetectReplyFormat, KnowsTheTemplates) {
  const struct {
    std::string_view name;
    ReplyFormat format;
  } kCases[] = {
      {"chatml", {CallFormat::kHermes, false}},          {"qwen3", {CallFormat::kHermes, true}},
      {"llama3_tools", {CallFormat::kLlama, false}},     {"harmony", {CallFormat::kHarmony, false}},
      {"deepseek", {CallFormat::kDeepSeek, true, true}}, {"gemma", {CallFormat::kHermes, false}},
      {"mistral_tools", {CallFormat::kNone, false}},
  };
  const std::filesystem::path data = std::getenv("WEFT_TEST_DATA");
  for (const auto& test : kCases) {
    std::ostringstream source;
    source
        << std::ifstream(data / "chat" / "templates" / (std::string(test.name) + ".jinja")).rdbuf();
    EXPECT_TRUE(DetectReplyFormat(source.str()) == test.format) << test.name;
  }
  EXPECT_TRUE(DetectReplyFormat(kChatMl) == (ReplyFormat{CallFormat::kHermes, false}));
}

}  // namespace
}  // namespace weft
