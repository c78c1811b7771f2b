#include "coordinator/json/checked_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

std::string Repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ParseJson, Objects_KeepTheOrderOfTheText) {
  ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(R"({"z": 1, "a": [true, null], "m": "x"})", {}));
  EXPECT_EQ(json.dump(), R"({"z":1,"a":[true,null],"m":"x"})");
}

struct Refusal {
  std::string text;
  std::string part;  // of the message
};

TEST(ParseJson, WhatIsNoJson_IsRefused) {
  const JsonLimits limits = {.depth = 4, .members = 3, .values = 8};
  const std::vector<Refusal> refusals = {
      {"", "line 1"},
      {"{", "line 1"},
      {"{\"a\": 1,\n \"b\": }", "line 2"},
      {"[1] 2", "line 1"},
      {"[01]", "line 1"},
      {"[NaN]", "line 1"},
      {"[1e999]", "1e999"},
      {"\"\xFF\"", "UTF-8"},
      {"\"\xED\xA0\x80\"", "UTF-8"},
      {"\"\\ud800\"", "surrogate"},
      {R"({"a": 1, "a": 2})", "key 'a' stands twice"},
      {"[[[[[]]]]]", "more than 4 objects and arrays"},
      {Repeat("[", 100000), "more than 4 objects and arrays"},
      {R"({"a": 1, "b": 2, "c": 3, "d": 4})", "more than 3 keys"},
      {"[1,2,3,4,5,6,7,8]", "more than 8 values"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(ParseJson(refusal.text, limits),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(refusal.part)))
        << refusal.text.substr(0, 50);
  }
  EXPECT_OK(ParseJson("[[[[]]]]", limits));
  EXPECT_OK(ParseJson("[1,2,3,4,5,6,7]", limits));
}

TEST(JsonValue, Find_NullOrMissing_IsNothing) {
  ASSERT_OK_AND_ASSIGN(const Json json, ParseJson(R"({"a": null, "b": {"c": 1}})", {}));
  const JsonValue root(json);
  EXPECT_FALSE(root.Find("a").has_value());
  EXPECT_FALSE(root.Find("x").has_value());
  ASSERT_TRUE(root.Find("b").has_value());
  EXPECT_FALSE(root.Find("b")->Find("c")->Find("d").has_value());  // a number has no members
  EXPECT_EQ(root.Find("b")->Find("c")->path(), "b.c");
}

TEST(JsonValue, Readers_OtherTypes_NameThePath) {
  ASSERT_OK_AND_ASSIGN(
      const Json json,
      ParseJson(R"({"n": -1.5, "s": "a\nb", "big": 18446744073709551615, "list": [1]})", {}));
  const JsonValue root(json);
  const JsonValue number = *root.Find("n");
  const JsonValue text = *root.Find("s");
  const JsonValue big = *root.Find("big");
  EXPECT_EQ(*number.Number(-2, 2), -1.5);
  EXPECT_THAT(number.Number(0, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("n: -1.5, want a number from 0 to 2")));
  EXPECT_THAT(text.Number(0, 2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("s: ")));
  EXPECT_EQ(*text.String(3), "a\nb");
  EXPECT_THAT(text.String(2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit is 2")));
  EXPECT_THAT(text.Text(3), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("control")));
  EXPECT_THAT(big.Integer(0, INT64_MAX), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(number.Integer(-2, 2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(number.Amount(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(number.Bool(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(root.Find("list")->Elements(0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ((*root.Find("list")->Elements(1))[0].path(), "list[0]");
}

}  // namespace
}  // namespace weft
