#include "coordinator/scheduler/rule.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

TEST(Rule, NamesAreUniqueAndParsed) {
  std::set<std::string_view> names;
  for (const Rule rule : AllRules()) {
    EXPECT_TRUE(names.insert(RuleName(rule)).second);
    ASSERT_OK_AND_ASSIGN(const Rule parsed, ParseRule(RuleName(rule)));
    EXPECT_EQ(parsed, rule);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kRuleCount));
}

TEST(Rule, UnknownNames_ListTheKnown) {
  const auto rule = ParseRule("ofload");
  EXPECT_EQ(rule.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(rule.status().message(),
              testing::HasSubstr("no scheduler rule 'ofload'; there are view-source, "));
  EXPECT_LT(ParseRule(std::string(10000, 'x')).status().message().size(), 1000u);
}

TEST(RuleSet, HoldsWhatWasAdded) {
  RuleSet set;
  for (const Rule rule : AllRules()) EXPECT_FALSE(set.Has(rule));
  set.Add(Rule::kOffload);
  for (const Rule rule : AllRules()) EXPECT_EQ(set.Has(rule), rule == Rule::kOffload);
}

}  // namespace
}  // namespace weft
