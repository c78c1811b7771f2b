#include "coordinator/chat/text_guard.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "coordinator/chat/chat_template.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

namespace weft {
namespace {

constexpr int32_t kControl = 3;
const std::vector<std::string> kMarks = {"<|im_start|>", "<|im_end|>", "<|im_end|>\n", "</think>",
                                         "<s>",          "im",         "\xEF\xBD\x9C"};

absl::StatusOr<ChatTemplate> Made(const char* source) {
  ChatTemplateOptions options;
  options.source = source;
  return ChatTemplate::Create(options);
}

class TextGuardTest : public testing::Test {
 protected:
  TextGuardTest() {
    std::vector<SampleToken> special;
    for (const std::string& mark : kMarks) special.push_back({mark, 0.0f, kControl});
    auto tokenizer = Tokenizer::Create(MakeBytePair({}, special));
    EXPECT_OK(tokenizer);
    tokenizer_ = *std::move(tokenizer);
  }

  // The control tokens among the tokens of a rendered chat, and the text of all.
  struct Prompt {
    std::vector<std::string> marks;
    std::string text;
  };
  Prompt Encode(const Json& messages, const ChatTemplate& chat_template) {
    const auto guard = TextGuard::Create(*tokenizer_, {&messages});
    EXPECT_OK(guard);
    ChatRequest request;
    request.messages = guard->Guard(messages);
    const auto rendered = chat_template.Render(request);
    EXPECT_OK(rendered);
    const GuardedText guarded = guard->TakeOut(*rendered);
    const auto ids = tokenizer_->Encode(guarded.text, {.plain = guarded.plain});
    EXPECT_OK(ids);
    Prompt prompt;
    for (const int32_t id : *ids) {
      if (tokenizer_->vocabulary().type(id) == TokenType::kControl) {
        prompt.marks.push_back(tokenizer_->Piece(id, true));
      }
      prompt.text += tokenizer_->Piece(id, true);
    }
    return prompt;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

// INV-J5 of the design.
TEST_F(TextGuardTest, WhatClientsWrite_NeverBecomesControlTokens) {
  Random random(TestSeed(61));
  const auto chat_ml = Made("");
  ASSERT_OK(chat_ml);
  for (int round = 0; round < 300; ++round) {
    Json messages = Json::array();
    std::string said;
    const int64_t count = random.Between(1, 4);
    for (int64_t m = 0; m < count; ++m) {
      std::string content;
      for (int64_t part = random.Between(0, 6); part > 0; --part) {
        const auto which = static_cast<size_t>(random.Between(0, std::ssize(kMarks)));
        std::string piece = which < kMarks.size() ? kMarks[which] : "a<b";
        if (random.Between(0, 3) == 0) piece = piece.substr(0, piece.size() / 3);
        if (piece.starts_with('\xEF') && piece.size() < 3) piece = "<";
        content += piece;
      }
      if (content.find("</think>") != content.npos) content += "!";
      messages.push_back({{"role", "user"}, {"content", content}});
      said += content;
    }
    const Prompt prompt = Encode(messages, *chat_ml);
    // Only what ChatML writes itself.
    std::vector<std::string> wanted;
    std::string text;
    for (const Json& message : messages) {
      wanted.insert(wanted.end(), {"<|im_start|>", "<|im_end|>\n"});
      text += "<|im_start|>user\n" + message["content"].get<std::string>() + "<|im_end|>\n";
    }
    wanted.push_back("<|im_start|>");
    EXPECT_EQ(prompt.marks, wanted) << said;
    EXPECT_EQ(prompt.text, text + "<|im_start|>assistant\n");
  }
}

TEST_F(TextGuardTest, ThoughtsOfTheAssistant_StayMarked) {
  ASSERT_OK_AND_ASSIGN(const ChatTemplate made, Made("{% for m in messages %}{{ m.content }};"
                                                     "{% endfor %}"));
  const Json messages = {{{"role", "user"}, {"content", "a</think>b"}},
                         {{"role", "assistant"}, {"content", "c</think>d<s>"}}};
  const Prompt prompt = Encode(messages, made);
  EXPECT_EQ(prompt.marks, std::vector<std::string>{"</think>"});
  EXPECT_EQ(prompt.text, "a</think>b;c</think>d<s>;");
}

TEST_F(TextGuardTest, TextsThatHoldGuards_KeepThem) {
  ASSERT_OK_AND_ASSIGN(const ChatTemplate made, Made("{{ messages[0].content }}"));
  Json messages = {{{"role", "user"}, {"content", "\xEF\xB7\x90<s>\xEF\xB7\x91"}}};
  EXPECT_EQ(Encode(messages, made).text, "\xEF\xB7\x90<s>\xEF\xB7\x91");
  std::string all;
  for (int i = 0; i < 32; ++i) all += std::string("\xEF\xB7") + static_cast<char>(0x90 + i);
  messages[0]["content"] = all;
  EXPECT_THAT(TextGuard::Create(*tokenizer_, {&messages}),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("U+FDD0")));
}

}  // namespace
}  // namespace weft
