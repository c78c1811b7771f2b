#include "coordinator/tokenizer/special_tokens.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kUnknownType = 2;
constexpr int32_t kControlType = 3;
constexpr int32_t kUserType = 4;

Vocabulary MakeVocabulary(const std::vector<SampleToken>& tokens) {
  auto vocabulary = Vocabulary::Create(MakeMetadata("gpt2", tokens));
  EXPECT_OK(vocabulary);
  return *std::move(vocabulary);
}

// Tokens as "[text]", raw text as it is.
std::vector<std::string> Show(const Vocabulary& vocabulary,
                              const std::vector<TextFragment>& fragments) {
  std::vector<std::string> shown;
  for (const TextFragment& fragment : fragments) {
    if (fragment.token == kNoToken) {
      shown.emplace_back(fragment.raw);
    } else {
      shown.push_back(absl::StrCat("[", AbslView(vocabulary.text(fragment.token)), "]"));
    }
  }
  return shown;
}

std::vector<std::string> Partition(const std::vector<SampleToken>& tokens, std::string_view text,
                                   bool parse_special = true, bool strips_right = false) {
  const Vocabulary vocabulary = MakeVocabulary(tokens);
  return Show(vocabulary, SpecialTokens(vocabulary, strips_right).Partition(text, parse_special));
}

TEST(SpecialTokensTest, ControlTokens_OnlyWhenParsed) {
  const std::vector<SampleToken> tokens = {
      {"<s>", 0, kControlType}, {"<unk>", 0, kUnknownType}, {"<u>", 0, kUserType}, {"a"}};
  EXPECT_THAT(Partition(tokens, "x<s><u>a<unk>"),
              ElementsAre("x", "[<s>]", "[<u>]", "a", "[<unk>]"));
  EXPECT_THAT(Partition(tokens, "x<s><u>a<unk>", /*parse_special=*/false),
              ElementsAre("x<s>", "[<u>]", "a<unk>"));
}

TEST(SpecialTokensTest, LongestOverTheWholeText_NotLeftmost) {
  const std::vector<SampleToken> tokens = {{"<ab>", 0, kControlType},
                                           {"b><cd>>>", 0, kControlType}};
  EXPECT_THAT(Partition(tokens, "<ab><cd>>>"), ElementsAre("<a", "[b><cd>>>]"));
}

TEST(SpecialTokensTest, ShorterToken_FoundInWhatALongerOneLeft) {
  const std::vector<SampleToken> tokens = {
      {"abcd", 0, kUserType}, {"xab", 0, kUserType}, {"x", 0, kUserType}};
  EXPECT_THAT(Partition(tokens, "xabcd"), ElementsAre("[x]", "[abcd]"));
}

TEST(SpecialTokensTest, EqualLength_LowerIdFirst) {
  EXPECT_THAT(Partition({{"bc", 0, kUserType}, {"ab", 0, kUserType}}, "abc"),
              ElementsAre("a", "[bc]"));
  EXPECT_THAT(Partition({{"ab", 0, kUserType}, {"bc", 0, kUserType}}, "abc"),
              ElementsAre("[ab]", "c"));
}

TEST(SpecialTokensTest, RunsOfOneToken_LeftToRight) {
  EXPECT_THAT(Partition({{"aa", 0, kUserType}}, "aaaaa"), ElementsAre("[aa]", "[aa]", "a"));
}

TEST(SpecialTokensTest, StripsRight_DropsWhiteSpaceAfterTokens) {
  const std::vector<SampleToken> tokens = {
      {"<s>", 0, kControlType}, {"<|end|>", 0, kControlType}, {"\n", 0, kUserType}};
  EXPECT_THAT(Partition(tokens, "<|end|> \n x<s> y", true, /*strips_right=*/true),
              ElementsAre("[<|end|>]", "x", "[<s>]", " y"));
  EXPECT_THAT(Partition(tokens, "<|end|> \n x<s> y"),
              ElementsAre("[<|end|>]", " ", "[\n]", " x", "[<s>]", " y"));
}

TEST(SpecialTokensTest, EmptyAndOverlongTexts_AreNotLookedFor) {
  const std::string overlong(kSpecialTextLimit + 1, 'a');
  const Vocabulary vocabulary =
      MakeVocabulary({{"", 0, kControlType}, {overlong, 0, kControlType}, {"b", 0, kUserType}});
  const SpecialTokens special(vocabulary, false);
  EXPECT_EQ(special.ignored_count(), 1);
  EXPECT_THAT(Show(vocabulary, special.Partition(overlong + "b", true)),
              ElementsAre(overlong, "[b]"));
  EXPECT_TRUE(special.Partition("", true).empty());
}

TEST(SpecialTokensTest, EqualTexts_TheLastIdIsUsed) {
  const Vocabulary vocabulary =
      MakeVocabulary({{"<x>", 0, kControlType}, {"<x>", 0, kControlType}});
  const auto fragments = SpecialTokens(vocabulary, false).Partition("<x>", true);
  ASSERT_EQ(fragments.size(), 1u);
  EXPECT_EQ(fragments[0].token, 1);
}

// The definition: for each token, longest first, search every raw fragment again and again.
std::vector<TextFragment> PartitionPlainly(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<TokenId> order;
  order.reserve(static_cast<size_t>(vocabulary.size()));
  for (TokenId id = 0; id < vocabulary.size(); ++id) order.push_back(id);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return vocabulary.text(a).size() > vocabulary.text(b).size();
  });
  std::vector<TextFragment> fragments;
  if (!text.empty()) fragments.push_back({.raw = text});
  for (const TokenId id : order) {
    std::vector<TextFragment> refined;
    for (const TextFragment& fragment : fragments) {
      if (fragment.token != kNoToken) {
        refined.push_back(fragment);
        continue;
      }
      std::string_view rest = fragment.raw;
      size_t found = rest.find(vocabulary.text(id));
      for (; found != std::string_view::npos; found = rest.find(vocabulary.text(id))) {
        if (found > 0) refined.push_back({.raw = rest.substr(0, found)});
        refined.push_back({.token = id});
        rest = rest.substr(found + vocabulary.text(id).size());
      }
      if (!rest.empty()) refined.push_back({.raw = rest});
    }
    fragments = refined;
  }
  return fragments;
}

TEST(SpecialTokensTest, RandomTokens_SameAsThePlainDefinition) {
  const uint64_t seed = 7;
  SCOPED_TRACE(seed);
  Random random(seed);
  const auto random_text = [&](int64_t low, int64_t high) {
    std::string text;
    const int64_t length = random.Between(low, high);
    for (int64_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.Between(0, 1));
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<SampleToken> tokens;
    for (int i = 0; i < 6; ++i) {
      const std::string text = random_text(1, 6);
      const bool is_new = std::none_of(tokens.begin(), tokens.end(), [&](const SampleToken& token) {
        return token.text == text;
      });
      if (is_new) tokens.push_back({text, 0, kUserType});
    }
    const Vocabulary vocabulary = MakeVocabulary(tokens);
    const SpecialTokens special(vocabulary, false);
    for (int i = 0; i < 10; ++i) {
      const std::string text = random_text(0, 40);
      EXPECT_EQ(Show(vocabulary, special.Partition(text, false)),
                Show(vocabulary, PartitionPlainly(vocabulary, text)))
          << text;
    }
  }
}

}  // namespace
}  // namespace weft
