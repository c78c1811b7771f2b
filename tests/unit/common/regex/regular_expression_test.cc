// Searches with expressions that people type. (What the tokenizer asks is tested with it.)
#include "common/regex/regular_expression.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<bool> Search(std::string_view expression, std::string_view text) {
  auto compiled = RegularExpression::Create(expression, RegularExpressionMode::kSearch);
  if (!compiled.ok()) return compiled.status();
  return (*compiled)->Contains(text);
}

TEST(RegularExpressionSearch, MatchesAnywhere) {
  struct Case {
    const char* expression;
    const char* text;
    bool matches;
  };
  const Case cases[] = {
      {"exps", "blk.3.ffn_up_exps.weight", true},
      {"^exps", "blk.3.ffn_up_exps.weight", false},
      {R"(blk\.(1|3)\.ffn_(up|down))", "blk.3.ffn_up_exps.weight", true},
      {R"(blk\.(1|3)\.ffn_(up|down))", "blk.13.ffn_up.weight", false},
      {R"([\S]weight$)", "output.weight", true},
      {R"(\Qa.b\E)", "a.b", true},
      {R"(\Qa.b\E)", "axb", false},
      {"", "anything", true},
      {"x", "", false},
      {"ä+$", "blä", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.expression);
    ASSERT_OK_AND_ASSIGN(const bool found, Search(c.expression, c.text));
    EXPECT_EQ(found, c.matches);
  }
}

TEST(RegularExpressionSearch, BadExpression_IsTheCallersFault) {
  EXPECT_THAT(Search("blk.(1|2", "x"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'blk.(1|2' at 8"), HasSubstr("parenthesis"))));
  EXPECT_FALSE(Search(std::string(3000, '('), "x").ok());
  EXPECT_FALSE(Search("\xff", "x").ok());
  EXPECT_FALSE(Search("x", "\xff").ok());
}

TEST(RegularExpressionSearch, ExpressionThatTriesTooMuch_GivesUp) {
  EXPECT_THAT(Search("(a+)+$", std::string(64, 'a') + "b"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit")));
  EXPECT_THAT(Search("((((((a*)*)*)*)*)*)*[cd]", std::string(200, 'a')),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("limit")));
}

}  // namespace
}  // namespace weft
