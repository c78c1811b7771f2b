#include "coordinator/tokenizer/pre_tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

using Words = std::vector<std::string>;

std::unique_ptr<PreTokenizer> Load(std::string_view id) {
  const PreTokenizerRow* row = FindPreTokenizer(id);
  EXPECT_NE(row, nullptr) << id;
  if (row == nullptr) return nullptr;
  auto pre_tokenizer = PreTokenizer::Create(*row);
  EXPECT_OK(pre_tokenizer);
  return pre_tokenizer.ok() ? *std::move(pre_tokenizer) : nullptr;
}

Words SplitBy(const PreTokenizer& pre_tokenizer, std::string_view text) {
  const auto words = pre_tokenizer.Split(text);
  EXPECT_OK(words);
  return words.ok() ? Words(words->begin(), words->end()) : Words();
}

Words Split(std::string_view id, std::string_view text) {
  const auto pre_tokenizer = Load(id);
  return pre_tokenizer == nullptr ? Words() : SplitBy(*pre_tokenizer, text);
}

std::string Join(const Words& words) {
  return std::accumulate(words.begin(), words.end(), std::string());
}

TEST(PreTokenizerTest, OracleFixtures_SameWords) {
  const char* data = std::getenv("WEFT_TEST_DATA");
  ASSERT_NE(data, nullptr) << "run by ctest, or set WEFT_TEST_DATA to tests/data";
  int text_count = 0;
  std::set<std::string> ids;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(data) / "pretokenizer")) {
    std::ifstream file(entry.path());
    const auto fixture = nlohmann::json::parse(file);
    const auto id = fixture["pre"].get<std::string>();
    SCOPED_TRACE(id);
    ids.insert(id);
    const auto pre_tokenizer = Load(id);
    ASSERT_NE(pre_tokenizer, nullptr);
    for (const auto& words : fixture["words"]) {
      const Words wanted = words.get<Words>();
      EXPECT_EQ(SplitBy(*pre_tokenizer, Join(wanted)), wanted) << words;
      ++text_count;
    }
  }
  EXPECT_EQ(ids.size(), 14u);
  EXPECT_GE(text_count, 14 * 30);
}

TEST(PreTokenizerTest, EveryIdOfTheTable_IsInOneRowAndCompiles) {
  std::set<std::string_view> ids;
  for (const PreTokenizerRow& row : PreTokenizerTable()) {
    EXPECT_OK(PreTokenizer::Create(row));
    for (const std::string_view id : row.ids) EXPECT_TRUE(ids.insert(id).second) << id;
  }
  for (const std::string_view id :
       {"gpt-2", "llama-bpe", "qwen2", "deepseek-v3", "deepseek-coder", "falcon", "starcoder",
        "refact", "command-r", "tekken", "gpt-4o", "llama4", "qwen35", "default"}) {
    EXPECT_TRUE(ids.contains(id)) << id;
  }
  EXPECT_EQ(FindPreTokenizer("no-such-id"), nullptr);
}

TEST(PreTokenizerTest, Alternation_TakesTheFirstNotTheLongest) {
  // 's comes before the alternative for letters after punctuation.
  EXPECT_THAT(Split("llama-bpe", "it'solid"), ElementsAre("it", "'s", "olid"));
  EXPECT_THAT(Split("llama-bpe", "it'lend"), ElementsAre("it", "'lend"));
}

TEST(PreTokenizerTest, BlanksBeforeText_LeaveTheLastOne) {
  EXPECT_THAT(Split("llama-bpe", "a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Split("llama-bpe", "a   "), ElementsAre("a", "   "));
  EXPECT_THAT(Split("gpt-2", "a \t\tb"), ElementsAre("a", " \t", "\t", "b"));
  EXPECT_THAT(Split("llama-bpe", "a\t\tb"), ElementsAre("a", "\t", "\tb"));
}

TEST(PreTokenizerTest, BlanksWithNewlines_GoThroughTheLastNewline) {
  EXPECT_THAT(Split("llama-bpe", "a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(Split("gpt-2", "a\n\n\nb"), ElementsAre("a", "\n\n", "\n", "b"));
}

TEST(PreTokenizerTest, OneCharacterBeforeLetters_BelongsToThem) {
  EXPECT_THAT(Split("llama-bpe", "(a)\tb"), ElementsAre("(a", ")", "\tb"));
  EXPECT_THAT(Split("llama-bpe", "\xF0\x9F\x98\x80x"), ElementsAre("\xF0\x9F\x98\x80x"));
  EXPECT_THAT(Split("gpt-2", "(a)"), ElementsAre("(", "a", ")"));
}

TEST(PreTokenizerTest, Contractions_AnyCaseOnlyWhereTheExpressionSaysSo) {
  EXPECT_THAT(Split("llama-bpe", "I'LL"), ElementsAre("I", "'LL"));
  EXPECT_THAT(Split("gpt-2", "I'LL"), ElementsAre("I", "'", "LL"));
  EXPECT_THAT(Split("gpt-4o", "I'LL"), ElementsAre("I'LL"));
  EXPECT_THAT(Split("tekken", "I'll"), ElementsAre("I", "'ll"));
}

TEST(PreTokenizerTest, LongS_IsNotTheContraction) {
  EXPECT_THAT(Split("llama-bpe", "a'\xC5\xBFx"), ElementsAre("a", "'\xC5\xBFx"));
}

TEST(PreTokenizerTest, OtherNumbers_CountAsNumbers) {
  // Superscript two, Roman four, circled one.
  EXPECT_THAT(Split("llama-bpe",
                    "x\xC2\xB2\xE2\x85\xA3\xE2\x91\xA0"
                    "1"),
              ElementsAre("x", "\xC2\xB2\xE2\x85\xA3\xE2\x91\xA0", "1"));
  EXPECT_THAT(Split("qwen2", "12"), ElementsAre("1", "2"));
  EXPECT_THAT(Split("default", "1234567"), ElementsAre("123", "456", "7"));
}

TEST(PreTokenizerTest, MongolianVowelSeparator_IsNotWhiteSpace) {
  EXPECT_THAT(Split("llama-bpe", "a \xE1\xA0\x8E"), ElementsAre("a", " \xE1\xA0\x8E"));
}

TEST(PreTokenizerTest, CaseClasses_SplitAtUpperAfterLower) {
  EXPECT_THAT(Split("gpt-4o", "fooBarBAZqux"), ElementsAre("foo", "Bar", "BAZqux"));
  // Greek: the reference's approximation would not split here.
  EXPECT_THAT(Split("tekken", "\xCE\xB1\xCE\x92"), ElementsAre("\xCE\xB1", "\xCE\x92"));
}

TEST(PreTokenizerTest, InvalidUtf8_IsAReplacementCharacterWithItsOwnBytes) {
  EXPECT_THAT(Split("llama-bpe", "a \xFF\xFE b"), ElementsAre("a", " \xFF\xFE", " b"));
  EXPECT_THAT(Split("llama-bpe", "\xE4\xB8"), ElementsAre("\xE4\xB8"));
  EXPECT_THAT(Split("gpt-2", "x\xED\xA0\x80y"), ElementsAre("x", "\xED\xA0\x80", "y"));
  EXPECT_THAT(Split("llama-bpe", "\xC3(\xC3\xA4"), ElementsAre("\xC3(", "\xC3\xA4"));
}

TEST(PreTokenizerTest, EmptyText_HasNoWords) { EXPECT_TRUE(Split("llama-bpe", "").empty()); }

TEST(PreTokenizerTest, RandomBytes_WordsJoinToTheText) {
  const uint64_t seed = 20261129;
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::string_view units[] = {" ",
                                    "\n",
                                    "a",
                                    "Z",
                                    "'",
                                    "s",
                                    "9",
                                    "\xC3\xA9",
                                    "\xE4\xB8\xAD",
                                    "\xCC\x81",
                                    "\xF0\x9F\x98\x80",
                                    "\xFF",
                                    "\xC3",
                                    "\x00",
                                    ".",
                                    "/"};
  for (const PreTokenizerRow& row : PreTokenizerTable()) {
    const auto pre_tokenizer = Load(row.ids[0]);
    ASSERT_NE(pre_tokenizer, nullptr);
    for (int round = 0; round < 200; ++round) {
      std::string text;
      const int64_t length = random.Between(0, 30);
      for (int64_t i = 0; i < length; ++i) {
        text += units[random.Between(0, static_cast<int64_t>(std::size(units)) - 1)];
      }
      const Words words = SplitBy(*pre_tokenizer, text);
      EXPECT_EQ(Join(words), text);
      for (const std::string& word : words) EXPECT_FALSE(word.empty());
    }
  }
}

// The steps for four times the text, relative to the text.
double StepGrowth(const PreTokenizerRow& row, const std::string& unit, const std::string& tail) {
  const auto count = [&](int repeats) {
    std::string text;
    for (int i = 0; i < repeats; ++i) text += unit;
    const auto steps = PreTokenizer::CountStepsForTest(row, text + tail);
    EXPECT_OK(steps);
    return steps.ok() ? static_cast<double>(*steps) : 0.0;
  };
  return count(1600) / count(400);
}

TEST(PreTokenizerTest, LongRuns_StepsGrowLinearly) {
  for (const PreTokenizerRow& row : PreTokenizerTable()) {
    for (const char* unit : {"a", "A", " ", "\n", "\t", "7", "'", ".", "\xCC\x81", "\xE4\xB8\xAD",
                             "\xF0\x9F\x98\x80", "\xFF", "\x01", " \n", "a ", "A\xCC\x81", "/\n"}) {
      for (const char* tail : {"", "x", "\n", " ", "A"}) {
        const double growth = StepGrowth(row, unit, tail);
        EXPECT_LT(growth, 4.5) << row.ids[0] << " unit '" << unit << "' tail '" << tail << "'";
      }
    }
  }
}

TEST(PreTokenizerTest, ExpressionThatTriesEveryStart_ShowsInTheSteps) {
  const std::string_view ids[] = {"planted"};
  const std::string_view expressions[] = {R"(\s+$)"};
  const PreTokenizerRow row = {.ids = ids, .expressions = expressions};
  EXPECT_GT(StepGrowth(row, " ", "x"), 10.0);
}

}  // namespace
}  // namespace weft
