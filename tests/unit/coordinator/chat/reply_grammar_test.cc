#include "coordinator/chat/reply_grammar.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_markers.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/grammar/tokenizer_trie.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

namespace weft {
namespace {

using testing::HasSubstr;
using Kind = ReplyEvent::Kind;

constexpr char kTools[] =
    R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object",
          "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
          "required": ["a", "b"], "additionalProperties": false}}},
        {"type": "function", "function": {"name": "now"}},
        {"type": "function", "function": {"name": "set-mood", "parameters": {"type": "object",
          "properties": {"mood": {"enum": ["calm", "gr\"im"]}}, "required": ["mood"]}}}])";

constexpr int32_t kControl = 3;

// What control tokens there are in a vocabulary of single bytes and them.
struct Marks {
  std::vector<std::string> texts;
  std::string ends;  // the one of them that ends a reply
};

// A model's tokens: single bytes, the marks, and one that ends if none of them does.
class Model {
 public:
  explicit Model(const Marks& marks) {
    std::vector<SampleToken> control;
    control.reserve(marks.texts.size() + 1);
    for (const std::string& text : marks.texts) control.push_back({text, 0.0f, kControl});
    control.push_back({"<the end>", 0.0f, kControl});
    GgufMetadata metadata = MakeBytePair({}, control);
    const std::string ends = marks.ends.empty() ? "<the end>" : marks.ends;
    const auto end = std::find_if(control.begin(), control.end(),
                                  [&](const SampleToken& token) { return token.text == ends; });
    metadata.Set("tokenizer.ggml.eos_token_id",
                 static_cast<uint32_t>(256 + (end - control.begin())));
    auto tokenizer = Tokenizer::Create(metadata);
    EXPECT_OK(tokenizer);
    tokenizer_ = *std::move(tokenizer);
    trie_ = MakeTokenTrie(*tokenizer_);
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // What a model that chooses at random says; it ends as soon as it may.
  absl::StatusOr<std::string> Say(const Grammar& grammar, Random& random) const {
    auto matcher = GrammarMatcher::Create(std::make_shared<const Grammar>(grammar), trie_);
    if (!matcher.ok()) return matcher.status();
    std::string text;
    for (int step = 0; step < 4000; ++step) {
      if ((*matcher)->MustEnd() || (step > 60 && (*matcher)->CanEnd())) return text;
      const auto mask = (*matcher)->Mask(trie_->size());
      if (!mask.ok()) return mask.status();
      // Marks first, so that something ends.
      std::vector<int32_t> ids, marks;
      for (int32_t id = 0; id < trie_->size(); ++id) {
        if (mask->Contains(id)) (id < 256 ? ids : marks).push_back(id);
      }
      if (!marks.empty() && (ids.empty() || random.Between(0, 3) == 0)) ids = marks;
      if (ids.empty()) return absl::InternalError("a dead end after " + text);
      const int32_t id = ids[static_cast<size_t>(random.Between(0, std::ssize(ids) - 1))];
      if (trie_->IsEnd(id)) return text;
      const absl::Status taken = (*matcher)->Accept(id);
      if (!taken.ok()) return taken;
      text += tokenizer_->Piece(id, true);
    }
    return absl::DeadlineExceededError("no end came");
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const TokenTrie> trie_;
};

struct FormatCase {
  const char* name;
  ReplyOptions options;
  Marks marks;
};

ReplyOptions Options(CallFormat calls, bool think = false, bool opened = false,
                     bool fenced = false) {
  return {.format = {.calls = calls, .think = think, .fenced = fenced},
          .with_tools = true,
          .thoughts_opened = opened};
}

const std::vector<std::string> kDeepSeekMarks = {
    std::string(marker::kCallsBegin), std::string(marker::kCallBegin),
    std::string(marker::kCallEnd), std::string(marker::kCallsEnd), std::string(marker::kSeparator)};

std::vector<FormatCase> AllFormats() {
  return {
      {"hermes, marks are text", Options(CallFormat::kHermes), {}},
      {"hermes", Options(CallFormat::kHermes), {{"<tool_call>", "</tool_call>"}, ""}},
      {"hermes, the closing mark ends",
       Options(CallFormat::kHermes),
       {{"<tool_call>", "</tool_call>"}, "</tool_call>"}},
      {"thoughts", Options(CallFormat::kHermes, true), {{"<think>", "</think>"}, ""}},
      {"thoughts opened", Options(CallFormat::kHermes, true, true), {{"</think>"}, ""}},
      {"llama", Options(CallFormat::kLlama), {{"<|python_tag|>"}, ""}},
      {"deepseek", Options(CallFormat::kDeepSeek), {kDeepSeekMarks, ""}},
      {"deepseek R1",
       Options(CallFormat::kDeepSeek, true, true, true),
       {[] {
          std::vector<std::string> marks = kDeepSeekMarks;
          marks.push_back("</think>");
          return marks;
        }(),
        ""}},
      {"harmony",
       Options(CallFormat::kHarmony),
       {{"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>",
         "<|constrain|>"},
        "<|call|>"}},
  };
}

std::vector<ReplyEvent> Parse(const ReplyOptions& options, const std::string& text) {
  ReplyParser parser(options);
  std::vector<ReplyEvent> events = parser.Append(text);
  for (ReplyEvent& event : parser.Finish()) events.push_back(std::move(event));
  return events;
}

struct Parts {
  std::string content;
  std::vector<FunctionCall> calls;
};

Parts PartsOf(const std::vector<ReplyEvent>& events) {
  Parts parts;
  for (const ReplyEvent& event : events) {
    if (event.kind == Kind::kContent) parts.content += event.text;
    if (event.kind == Kind::kCallBegin) parts.calls.push_back({event.text, ""});
    if (event.kind == Kind::kCallArguments) parts.calls.back().arguments += event.text;
  }
  return parts;
}

void ExpectFits(const FunctionCall& call) {
  const auto arguments = ParseJson(call.arguments, {});
  ASSERT_OK(arguments);
  if (call.name == "add") {
    EXPECT_TRUE(arguments->size() == 2 && (*arguments)["a"].is_number_integer() &&
                (*arguments)["b"].is_number_integer())
        << call.arguments;
  } else if (call.name == "now") {
    EXPECT_TRUE(arguments->empty()) << call.arguments;
  } else {
    ASSERT_EQ(call.name, "set-mood");
    EXPECT_THAT((*arguments)["mood"].get<std::string>(), testing::AnyOf("calm", "gr\"im"));
  }
}

TEST(ReplyGrammarTest, RequiredCalls_ComeInEveryFormat) {
  const uint64_t seed = TestSeed(51);
  Random random(seed);
  const Json tools = *ParseJson(kTools, {});
  for (const FormatCase& format : AllFormats()) {
    SCOPED_TRACE(format.name);
    const Model model(format.marks);
    ReplyBounds bounds;
    bounds.tools = &tools;
    ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                         MakeReplyGrammar(format.options, bounds, model.tokenizer()));
    int said = 0;
    for (int i = 0; i < 40; ++i) {
      const absl::StatusOr<std::string> text = model.Say(grammar, random);
      // Text without marks that end it may go on for long.
      if (absl::IsDeadlineExceeded(text.status())) continue;
      ASSERT_OK(text);
      ++said;
      const Parts parts = PartsOf(Parse(format.options, *text));
      EXPECT_EQ(parts.content, "") << *text;
      EXPECT_FALSE(parts.calls.empty()) << *text;
      for (const FunctionCall& call : parts.calls) ExpectFits(call);
    }
    EXPECT_GT(said, 10) << "seed " << seed;
  }
}

TEST(ReplyGrammarTest, OneNamedCall_IsThatOneOnly) {
  Random random(TestSeed(52));
  const Json tools = *ParseJson(kTools, {});
  for (const FormatCase& format : AllFormats()) {
    SCOPED_TRACE(format.name);
    const Model model(format.marks);
    ReplyBounds bounds;
    bounds.tools = &tools;
    bounds.function = "now";
    bounds.several_calls = false;
    ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                         MakeReplyGrammar(format.options, bounds, model.tokenizer()));
    for (int i = 0; i < 10; ++i) {
      const absl::StatusOr<std::string> text = model.Say(grammar, random);
      if (absl::IsDeadlineExceeded(text.status())) continue;
      ASSERT_OK(text);
      const Parts parts = PartsOf(Parse(format.options, *text));
      EXPECT_EQ(parts.content, "") << *text;
      ASSERT_EQ(parts.calls.size(), 1u) << *text;
      EXPECT_EQ(parts.calls[0].name, "now");
    }
  }
}

TEST(ReplyGrammarTest, BoundAnswers_ComeBehindThoughts) {
  Random random(TestSeed(52));
  for (const FormatCase& format : AllFormats()) {
    SCOPED_TRACE(format.name);
    const Model model(format.marks);
    ReplyBounds bounds;
    bounds.answer = [](GrammarBuilder& builder) {
      return AddGbnf("root ::= \"yes\" | \"no\"", builder);
    };
    ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                         MakeReplyGrammar(format.options, bounds, model.tokenizer()));
    int said = 0;
    for (int i = 0; i < 40; ++i) {
      const absl::StatusOr<std::string> text = model.Say(grammar, random);
      if (absl::IsDeadlineExceeded(text.status())) continue;
      ASSERT_OK(text);
      ++said;
      const Parts parts = PartsOf(Parse(format.options, *text));
      EXPECT_THAT(parts.content, testing::AnyOf("yes", "no")) << *text;
      EXPECT_TRUE(parts.calls.empty());
    }
    EXPECT_GT(said, 10);
  }
}

TEST(ReplyGrammarTest, AnswersOrCalls_AreBothAllowed) {
  const Json tools = *ParseJson(kTools, {});
  const Model model({});
  ReplyBounds bounds;
  bounds.tools = &tools;
  bounds.answer = [](GrammarBuilder& builder) { return AddGbnf("root ::= \"yes\"", builder); };
  ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                       MakeReplyGrammar(Options(CallFormat::kHermes), bounds, model.tokenizer()));
  EXPECT_TRUE(*Produces(grammar, "yes"));
  EXPECT_TRUE(
      *Produces(grammar, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(*Produces(grammar, "no"));
}

TEST(ReplyGrammarTest, SchemasThatCannotBeEnforced_AreErrorsOnlyOfStrictTools) {
  Json tools = *ParseJson(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}])", {});
  ReplyBounds bounds;
  bounds.tools = &tools;
  const Model plain({});
  ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                       MakeReplyGrammar(Options(CallFormat::kLlama), bounds, plain.tokenizer()));
  EXPECT_TRUE(*Produces(grammar, R"({"name": "f", "parameters": {"x": [1]}})"));
  tools[0]["function"]["strict"] = true;
  EXPECT_THAT(MakeReplyGrammar(Options(CallFormat::kLlama), bounds, plain.tokenizer()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tools[0].function.parameters: JSON schema: #: the keyword")));
  EXPECT_THAT(MakeReplyGrammar(Options(CallFormat::kNone), bounds, plain.tokenizer()),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("tool_choice")));
  tools[0]["function"] = {{"name", "two words"}};
  EXPECT_THAT(MakeReplyGrammar(Options(CallFormat::kLlama), bounds, plain.tokenizer()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tools[0].function.name")));
}

}  // namespace
}  // namespace weft
