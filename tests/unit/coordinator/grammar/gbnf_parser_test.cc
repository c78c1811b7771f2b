#include "coordinator/grammar/gbnf_parser.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

namespace weft {
namespace {

using testing::HasSubstr;

struct Case {
  const char* grammar;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

TEST(ParseGbnf, Grammars_ProduceTheirTexts) {
  const Case kCases[] = {
      {"root ::= \"a\" \"bc\"", {"abc"}, {"", "a", "abcd", "abd"}},
      {"root ::= \"a\" | \"b\" |", {"", "a", "b"}, {"ab", "c"}},
      {"root ::= (\"a\" | \"b\")+ \"c\"?", {"a", "abba", "bac"}, {"", "c", "acc"}},
      {"root ::= [a-c_-]*", {"", "a-b_c"}, {"d", "A"}},
      {"root ::= [^a-c\\]]", {"d", "\n", "é", "\xF0\x9F\x98\x80"}, {"a", "]", "", "dd", "\xC3"}},
      {"root ::= \"a\"{2} \"b\"{1,2} \"c\"{0,} \"d\"{,2}x\nx ::= \"x\"", {}, {}},
      {"root ::= \"a\"{2} \"b\"{1,2} \"c\"{0,}", {"aab", "aabbccc"}, {"ab", "aabbb", "aaab"}},
      {"root ::= \"ab\"* \"c\"", {"c", "ababc"}, {"abbc", "ab"}},
      {"root ::= \"\\u00e9\\x41\\n\\t\\\\\\\"\"", {"éA\n\t\\\""}, {"e"}},
      {"root ::= [\\u4e00-\\u9fff\\U0001F600]+", {"中文", "\xF0\x9F\x98\x80"}, {"a", "\xE4\xB8"}},
      {"root ::= . .", {"ab", "中a"}, {"a", "abc", "\xFF\xFE"}},
      {"# comment\nroot ::= item # more\n  item\n\nitem ::= [0-9] | \"(\" root \")\"",
       {"12", "(34)5", "((12)3)4"},
       {"1", "(1)2"}},
      {"root ::= (a? b?)* \"!\"\na ::= \"a\"\nb ::= \"b\"", {"!", "abba!", "bb!"}, {"", "c!"}},
      {"root ::= root2\nroot2 ::= (\"a\" root2)?", {"", "aaa"}, {"b"}},
      {"root ::= x\nx ::= x | \"a\"", {"a"}, {"aa", ""}},
      {"root ::= \"a\" (\"b\"\n | \"c\"\n)\n", {"ab", "ac"}, {"a"}},
      {"root ::= \"\"", {""}, {"a"}},
      {"root ::= \"a\" dead | \"b\"\ndead ::= \"x\" dead", {"b"}, {"a", "ax"}},
  };
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.grammar);
    const absl::StatusOr<Grammar> grammar = ParseGbnf(test.grammar);
    if (test.good.empty()) {
      EXPECT_FALSE(grammar.ok());
      continue;
    }
    ASSERT_OK(grammar);
    for (const std::string& text : test.good) {
      ASSERT_OK_AND_ASSIGN(const bool produced, Produces(*grammar, text));
      EXPECT_TRUE(produced) << text;
    }
    for (const std::string& text : test.bad) {
      ASSERT_OK_AND_ASSIGN(const bool produced, Produces(*grammar, text));
      EXPECT_FALSE(produced) << text;
    }
  }
}

TEST(ParseGbnf, BadGrammars_SayWhereAndWhat) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "no rule 'root'"},
      {"x ::= \"a\"", "no rule 'root'"},
      {"root ::= y", "rule 'y' is not defined"},
      {"root ::= \"a", "line 1, column 12: the text has no end"},
      {"root ::= [a", "the class has no end"},
      {"root ::= (\"a\"", "expected ')'"},
      {"root ::= \"a\")", "expected the next rule"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: this rule is defined twice"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\ud800\"", "no character of Unicode"},
      {"root ::= \"\\u12\"", "expected 4 hexadecimal digits"},
      {"root ::= [z-a]", "backwards"},
      {"root ::= []", "no character is in this class"},
      {"root ::= \"a\"{3,2}", "fewer than the least"},
      {"root ::= \"a\"{x}", "expected a number"},
      {"root ::= \"a\"{99999999999999999999}", "repetitions"},
      {"root ::= *", "expected text"},
      {"root", "expected a rule"},
      {"\xFF", "not UTF-8"},
      {"root ::= \"\\", "unknown escape"},
      {"root ::= root \"a\" | \"b\"", "rule 'root' is left-recursive"},
      {"root ::= a\na ::= b? c\nb ::= \"x\"\nc ::= a \"y\" | \"z\"", "left-recursive"},
      {"root ::= (root? \"a\"?)* \"b\"", "left-recursive"},
      {"root ::= \"a\" root", "can never be completed"},
  };
  for (const auto& [grammar, error] : kCases) {
    EXPECT_THAT(ParseGbnf(grammar), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)))
        << grammar;
  }
}

TEST(ParseGbnf, HostileGrammars_AreErrors) {
  const std::string deep =
      "root ::= " + std::string(60000, '(') + "\"a\"" + std::string(60000, ')');
  EXPECT_THAT(ParseGbnf(deep), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("more than 200 nested groups")));
  EXPECT_FALSE(ParseGbnf("root ::= " + std::string(60000, '(')).ok());
  EXPECT_FALSE(ParseGbnf("root ::= \"a\"" + std::string(60000, '*')).ok());
  EXPECT_THAT(ParseGbnf(std::string(size_t{2} << 20, ' ')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes, at most")));
  // Each doubles the one before: repetitions share what they repeat.
  std::string text = "\"a\"";
  for (int i = 0; i < 60; ++i) text = absl::StrCat("(", text, "){1000}");
  EXPECT_OK(ParseGbnf("root ::= " + text));
  std::string many = "root ::= \"b\"\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&many, "x", i, " ::= \"a\"{20000}\n");
  EXPECT_THAT(ParseGbnf(many),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
  // A chain of references as long as there may be rules.
  std::string chain = "root ::= x0\n";
  for (int i = 0; i < 30000; ++i) absl::StrAppend(&chain, "x", i, " ::= x", i + 1, "\n");
  ASSERT_OK_AND_ASSIGN(const Grammar grammar, ParseGbnf(chain + "x30000 ::= \"a\"\n"));
  ASSERT_OK_AND_ASSIGN(const bool produced, Produces(grammar, "a"));
  EXPECT_TRUE(produced);
}

}  // namespace
}  // namespace weft
