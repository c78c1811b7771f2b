#include "coordinator/grammar/grammar_matcher.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/json_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

namespace weft {
namespace {

using testing::HasSubstr;

std::unique_ptr<GrammarMatcher> Matcher(const Grammar& grammar,
                                        std::shared_ptr<const TokenTrie> trie,
                                        const MatcherLimits& limits = {}) {
  auto matcher =
      GrammarMatcher::Create(std::make_shared<const Grammar>(grammar), std::move(trie), limits);
  EXPECT_OK(matcher);
  return *std::move(matcher);
}

std::vector<std::string> Words() {
  return {"{",     "{\"",  "\":",  "\": ", ", ",      "\",",          "}",        "[1",   "true",
          "tru",   "null", "abc",  "\xC3", "\xA9",    "\xC3\xA9",     "\xE2\x82", "\xAC", "12",
          "-1.5e", "\\u",  "\n  ", "\"\"", "key\":1", "\xF0\x9F\x98", "",         "{",    "e+1"};
}

const char* const kGrammars[] = {
    R"x(root ::= ("a" | "ab" | "abc")* "é€"? [\U0001F600-\U0001F64F]?)x",
    R"x(root ::= "{" ws (pair ("," ws pair)*)? "}"
        pair ::= "\"" [^"\\]* "\":" ws value
        value ::= "true" | "null" | [0-9]+ | root
        ws ::= [ \n]{0,3})x",
    R"x(root ::= [^x]{3,7} | "12"+ "}")x",
};

TEST(GrammarMatcher, Mask_IsWhatSingleTokensSay) {
  Random random(TestSeed(41));
  const auto trie = MakeTrie(Words());
  for (const char* text : kGrammars) {
    ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf(text));
    for (int walk = 0; walk < 20; ++walk) {
      const auto matcher = Matcher(grammar, trie);
      for (int step = 0; step < 15; ++step) {
        ASSERT_OK_AND_ASSIGN(const TokenMask mask, matcher->Mask(trie->size() + 5));
        std::vector<int32_t> ids;
        for (int32_t id = 0; id < trie->size() + 5; ++id) {
          ASSERT_OK_AND_ASSIGN(const bool allows, matcher->Allows(id));
          ASSERT_EQ(allows, mask.Contains(id)) << text << " token " << id;
          if (allows && !trie->IsEnd(id)) ids.push_back(id);
        }
        EXPECT_EQ(mask.Contains(trie->size() - 1), matcher->CanEnd());
        if (ids.empty()) break;
        ASSERT_OK(matcher->Accept(ids[random.Between(0, std::ssize(ids) - 1)]));
      }
    }
  }
}

TEST(GrammarMatcher, AnyTokenisation_IsTheSame) {
  Random random(TestSeed(42));
  int walks = 0;
  const auto trie = MakeTrie(Words());
  for (const char* text : kGrammars) {
    ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf(text));
    for (uint64_t i = 0; i < TestCount(50); ++i) {
      const auto walker = Matcher(grammar, trie);
      absl::StatusOr<std::string> walk = RandomText(*walker, *trie, 12, random);
      if (absl::IsDeadlineExceeded(walk.status())) continue;  // lost in brackets
      ASSERT_OK(walk);
      ++walks;
      std::string produced = *std::move(walk);
      if (random.Between(0, 1) == 0 && !produced.empty()) {  // spoiled, perhaps
        produced[random.Between(0, std::ssize(produced) - 1)] =
            static_cast<char>(random.Between(0, 255));
      }
      ASSERT_OK_AND_ASSIGN(const bool whole, Produces(grammar, produced));
      const auto matcher = Matcher(grammar, trie);
      bool follows = true;
      for (size_t at = 0; at < produced.size() && follows;) {
        const auto count = static_cast<size_t>(random.Between(1, 5));
        ASSERT_OK_AND_ASSIGN(follows, matcher->AcceptBytes(produced.substr(at, count)));
        at += count;
      }
      EXPECT_EQ(follows && matcher->CanEnd(), whole) << produced;
    }
  }
  EXPECT_GT(walks, 0);
}

TEST(GrammarMatcher, EndTokens_OnlyWhereTheGrammarEnds) {
  const auto trie = MakeTrie({});
  const int32_t end = trie->size() - 1;
  ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf("root ::= \"ab\" \"c\"?"));
  const auto matcher = Matcher(grammar, trie);
  EXPECT_THAT(matcher->Accept(end), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(matcher->Accept('a'));
  EXPECT_THAT(matcher->Accept('c'),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("token 99")));
  ASSERT_OK(matcher->Accept('b'));
  EXPECT_TRUE(matcher->CanEnd());
  EXPECT_FALSE(matcher->MustEnd());
  ASSERT_OK(matcher->Accept(end));
  ASSERT_OK(matcher->Accept('c'));
  EXPECT_TRUE(matcher->MustEnd());
}

TEST(GrammarMatcher, BadUtf8_IsNeverAllowed) {
  ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf("root ::= .*"));
  for (const char* text : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                           "\xF8", "\xC3\x28", "\xF0\x80\x80\x80"}) {
    ASSERT_OK_AND_ASSIGN(const bool produced, Produces(grammar, text));
    EXPECT_FALSE(produced);
  }
}

// Two ways for each character: 2^n derivations, a few stacks.
TEST(GrammarMatcher, ExponentialDerivations_TakeLinearTime) {
  ASSERT_OK_AND_ASSIGN(const Grammar grammar,
                       ParseGbnf("root ::= x* \"!\"\nx ::= y | y\ny ::= \"a\" | \"a\" | \"aa\""));
  ASSERT_OK_AND_ASSIGN(const bool produced, Produces(grammar, std::string(5000, 'a') + "!"));
  EXPECT_TRUE(produced);
}

TEST(GrammarMatcher, TooManyStacks_AreAnErrorAndNothingElse) {
  ASSERT_OK_AND_ASSIGN(
      const Grammar grammar,
      ParseGbnf("root ::= \"b\" | x\nx ::= \"a\" x \"1\" | \"a\" x \"2\" | \"c\""));
  MatcherLimits limits;
  limits.stacks = 50;
  const auto matcher = Matcher(grammar, MakeTrie({}), limits);
  absl::StatusOr<bool> follows = true;
  int count = 0;
  for (; follows.ok() && count < 1000; ++count) follows = matcher->AcceptBytes("a");
  EXPECT_THAT(follows, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("alive stacks")));
  EXPECT_GT(count, 3);
  EXPECT_FALSE(matcher->CanEnd());
}

// A long text forgets what it no longer needs.
TEST(GrammarMatcher, LongTexts_StayWithinTheLimits) {
  ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf("root ::= \"a\"{0,20000} \"b\""));
  MatcherLimits limits;
  limits.states = 40;
  limits.nodes = 1000;
  const auto matcher = Matcher(grammar, MakeTrie({"aaa", "aab"}), limits);
  for (int i = 0; i < 19000; ++i) {
    ASSERT_OK(matcher->Accept('a'));
    if (i % 100 == 0) {
      ASSERT_OK_AND_ASSIGN(const TokenMask mask, matcher->Mask(257));
      EXPECT_TRUE(mask.Contains(256));
    }
  }
  ASSERT_OK(matcher->Accept('b'));
  EXPECT_TRUE(matcher->MustEnd());
}

}  // namespace
}  // namespace weft
