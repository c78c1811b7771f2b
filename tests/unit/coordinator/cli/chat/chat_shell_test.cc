// The dialogue, with lines, answers and Ctrl-C of a test.
#include "coordinator/cli/chat/chat_shell.h"

#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/coordinator/http/fake_engine.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

class FakeInterrupt final : public Interrupt {
 public:
  bool Take() override { return std::exchange(pending, false); }
  int descriptor() const override { return -1; }
  bool pending = false;
};

class FakeLines final : public LineReader {
 public:
  absl::StatusOr<InputLine> Read(const std::string& prompt) override {
    prompts += prompt;
    if (lines.empty()) return InputLine{};
    InputLine line = std::move(lines.front());
    lines.pop_front();
    return line;
  }
  void Add(const std::string& text) { lines.push_back({InputLine::Kind::kLine, text}); }
  void AddInterrupt(const std::string& typed) {
    lines.push_back({InputLine::Kind::kInterrupt, typed});
  }
  std::deque<InputLine> lines;
  std::string prompts;
};

class ChatShellTest : public testing::Test {
 protected:
  ChatShellTest() : tokenizer_(DemoTokenizer()), format_(*tokenizer_) {
    options_.model = "demo";
    options_.interactive = true;
    options_.shows_thoughts = true;
    engine_.SetPlay(Says({"Hel", "lo"}));
  }

  absl::Status RunShell() {
    ChatShell::Parts parts{.engine = &engine_,
                           .format = &format_,
                           .reader = &lines_,
                           .interrupt = &interrupt_,
                           .print = [this](const std::string& text) {
                             printed_ += text;
                             return absl::OkStatus();
                           }};
    return ChatShell(options_, std::move(parts), clock_, logger_).Run();
  }
  std::string Prompt(int64_t i) { return tokenizer_->Decode(engine_.request(i).prompt, {}); }

  FakeEngine engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  FakeFormat format_;
  FakeLines lines_;
  FakeInterrupt interrupt_;
  ChatShellOptions options_;
  SystemClock clock_;
  Logger logger_{"test", LogLevel::kError};
  std::string printed_;
};

TEST_F(ChatShellTest, EachAnswerKnowsWhatWasSaid) {
  options_.system = "Be brief.";
  options_.sampler.seed = 7;
  options_.most_tokens = 9;
  for (const char* line : {"One", "", "Two", "/reset", "Three"}) lines_.Add(line);
  EXPECT_OK(RunShell());
  ASSERT_EQ(engine_.submitted(), 3);
  EXPECT_THAT(Prompt(0), HasSubstr("<system>Be brief.<user>One"));
  EXPECT_THAT(Prompt(1), HasSubstr("<user>One<assistant>Hello<user>Two"));
  EXPECT_THAT(Prompt(2), HasSubstr("<system>Be brief.<user>Three"));
  EXPECT_THAT(Prompt(2), Not(HasSubstr("One")));
  EXPECT_EQ(engine_.request(1).sampler.seed, 8U);
  EXPECT_EQ(engine_.request(1).max_tokens, 9);
  EXPECT_EQ(printed_, "Hello\nHello\nA new conversation.\nHello\n");
}

TEST_F(ChatShellTest, ThoughtsAreDimmedAndNothingOfTheModelReachesTheTerminalRaw) {
  engine_.SetPlay(Says({"R:hm \x1b[2J\x1e", "R:so\x1e", "Yes\x1b]0;x\x07"}));
  lines_.Add("One");
  EXPECT_OK(RunShell());
  EXPECT_EQ(printed_, "\x1b[2mhm \u241B[2Jso\x1b[0m\nYes\u241B]0;x\u2407\n");
  printed_.clear();
  options_.shows_thoughts = false;
  lines_.Add("One");
  EXPECT_OK(RunShell());
  EXPECT_EQ(printed_, "Yes\u241B]0;x\u2407\n");
}

TEST_F(ChatShellTest, CtrlCStopsTheAnswerAndKeepsWhatCame) {
  engine_.SetPlay([this](const GenerationRequest&, GenerationStream& stream) {
    stream.Push({"Hal", {}});  // and never ends
    interrupt_.pending = engine_.submitted() == 2;
    if (engine_.submitted() == 1) {
      GenerationSummary summary;
      stream.Finish(absl::OkStatus(), summary);
    }
  });
  lines_.Add("One");
  lines_.Add("Two");
  EXPECT_OK(RunShell());
  EXPECT_EQ(engine_.cancelled(), 1);
  EXPECT_THAT(printed_, HasSubstr("[stopped]"));
}

TEST_F(ChatShellTest, CtrlCAtAnEmptyPromptEndsAtTheSecondTime) {
  lines_.AddInterrupt("half a line");
  lines_.AddInterrupt("");
  lines_.Add("One");
  lines_.AddInterrupt("");
  lines_.AddInterrupt("something");
  lines_.AddInterrupt("");
  lines_.AddInterrupt("");
  lines_.Add("never read");
  EXPECT_OK(RunShell());
  EXPECT_EQ(engine_.submitted(), 1);
  EXPECT_EQ(lines_.lines.size(), 1U);
}

TEST_F(ChatShellTest, AnErrorTakesTheMessageBack) {
  engine_.RefuseAfter(0, absl::InvalidArgumentError("prompt: too long"));
  lines_.Add("Long");
  lines_.Add("Short");
  lines_.Add("/nonsense");
  EXPECT_OK(RunShell());
  ASSERT_EQ(engine_.submitted(), 1);
  EXPECT_THAT(Prompt(0), Not(HasSubstr("Long")));
  // Where nobody looks it ends the program.
  options_.interactive = false;
  engine_.RefuseAfter(0, absl::InvalidArgumentError("prompt: too long"));
  lines_.Add("Long");
  EXPECT_THAT(RunShell(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too long")));
  lines_.Add("/nonsense");
  EXPECT_THAT(RunShell(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nonsense")));
  lines_.AddInterrupt("");
  EXPECT_THAT(RunShell(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ChatShellTest, AnErrorInTheMidstOfThoughtsLeavesTheTerminalPlain) {
  engine_.SetPlay([](const GenerationRequest&, GenerationStream& stream) {
    stream.Push({"R:hm", {}});
    stream.Finish(absl::UnavailableError("the server is shutting down"), {});
  });
  lines_.Add("One");
  EXPECT_OK(RunShell());
  EXPECT_EQ(printed_, "\x1b[2mhm\x1b[0m");
}

TEST_F(ChatShellTest, LinesGoOnAfterABackslash) {
  lines_.Add("One\\");
  lines_.Add("two");
  EXPECT_OK(RunShell());
  EXPECT_THAT(Prompt(0), HasSubstr("<user>One\ntwo"));
  EXPECT_EQ(lines_.prompts, "> . > ");
  options_.interactive = false;
  lines_.Add("C:\\");
  EXPECT_OK(RunShell());
  EXPECT_THAT(Prompt(1), HasSubstr("<user>C:\\"));
}

TEST_F(ChatShellTest, JsonIsOneObjectAnAnswerInAscii) {
  options_.json = true;
  options_.interactive = false;
  engine_.SetPlay(Says({"R:hm\x1e", "\u00fc\u009b1m\n"}, FinishReason::kLength));
  lines_.Add("One");
  EXPECT_OK(RunShell());
  EXPECT_EQ(printed_.find('\n'), printed_.size() - 1);
  for (const char c : printed_) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7F)) << printed_;
  const Json json = Json::parse(printed_, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["content"], "\u00fc\u009b1m\n");
  EXPECT_EQ(json["reasoning_content"], "hm");
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["reused_tokens"], 1);
}

TEST_F(ChatShellTest, SaveWritesTheConversation) {
  const TemporaryFolder folder;
  const std::string path = folder.File("a chat.json");
  engine_.SetPlay(Says({"R:hm\x1e", "Hello"}));
  lines_.Add("One");
  lines_.Add("/save " + path);
  lines_.Add("/save");
  lines_.Add("/save " + folder.File("none/file"));
  EXPECT_OK(RunShell());
  std::ifstream file(path);
  const Json json =
      Json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["model"], "demo");
  ASSERT_EQ(json["messages"].size(), 2U);
  EXPECT_EQ(json["messages"][0]["content"], "One");
  EXPECT_EQ(json["messages"][1]["role"], "assistant");
  EXPECT_EQ(json["messages"][1]["content"], "Hello");
  EXPECT_EQ(json["messages"][1]["reasoning_content"], "hm");
}

}  // namespace
}  // namespace weft
