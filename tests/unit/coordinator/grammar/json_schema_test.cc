#include "coordinator/grammar/json_schema.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/grammar/grammar_check.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Case {
  const char* schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void Check(const Case& test) {
  SCOPED_TRACE(test.schema);
  ASSERT_OK_AND_ASSIGN(const SchemaGrammar made, SchemaToGrammar(std::string_view(test.schema)));
  for (const std::string& text : test.good) {
    ASSERT_OK_AND_ASSIGN(const bool produced, Produces(made.grammar, text));
    EXPECT_TRUE(produced) << text;
  }
  for (const std::string& text : test.bad) {
    ASSERT_OK_AND_ASSIGN(const bool produced, Produces(made.grammar, text));
    EXPECT_FALSE(produced) << text;
  }
}

TEST(JsonSchema, Scalars) {
  const Case kCases[] = {
      {"true", {"1", "\"a\"", "{}", "[1, {\"a\":null}]", "-1.5e+3"}, {"", "01", "{a:1}", "nul"}},
      {R"({"type":"integer"})", {"0", "-12", "9007"}, {"1.0", "-", "00", "1e3"}},
      {R"({"type":"integer","minimum":-5,"maximum":12})",
       {"-5", "-1", "0", "9", "10", "12"},
       {"-6", "13", "100", "-0"}},
      {R"({"type":"integer","minimum":95})", {"95", "99", "100", "5000"}, {"94", "9", "-1"}},
      {R"({"type":"integer","maximum":-10})", {"-10", "-99", "-5000"}, {"-9", "0", "10"}},
      {R"({"type":"integer","exclusiveMinimum":1.5,"exclusiveMaximum":4})", {"2", "3"}, {"1", "4"}},
      {R"({"type":"integer","minimum":1234,"maximum":56789})",
       {"1234", "9999", "10000", "56789", "50000"},
       {"1233", "56790", "999", "60000"}},
      {R"({"type":"number","minimum":0,"maximum":1})", {"0", "0.25", "1"}, {"1.5", "-0.5", "2"}},
      {R"({"type":"number","minimum":3})", {"3", "3.5", "1000.25"}, {"2.9", "-4"}},
      {R"({"type":["string","null"],"maxLength":3})",
       {"null", "\"\"", "\"abc\"", "\"\\n\\u00e9x\""},
       {"\"abcd\"", "\"a", "\"\n\"", "\"\\ud800\"", "\"\\x\""}},
      {R"({"type":"string","minLength":2})", {"\"ab\"", "\"é€\""}, {"\"a\"", "\"é\""}},
      {R"({"type":"boolean","nullable":true})", {"true", "false", "null"}, {"0"}},
      {R"({"enum":["a\"b",1,null,{"k":[1,2]}]})",
       {"\"a\\\"b\"", "1", "null", "{\"k\":[1,2]}"},
       {"\"a\"", "2"}},
      {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
      {R"({"const":3.5})", {"3.5"}, {"3"}},
      {R"({"type":"string","format":"date"})",
       {"\"2024-01-31\"", "\"1999-02-28\""},
       {"\"2024-13-01\"", "\"2024-04-31\"", "\"2024-02-30\"", "\"24-01-01\""}},
      {R"({"type":"string","format":"date-time"})",
       {"\"2024-01-31T23:59:59Z\"", "\"2024-01-31T00:00:00.25+05:30\""},
       {"\"2024-01-31 23:59:59Z\"", "\"2024-01-31T24:00:00Z\""}},
      {R"({"format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123\"", "5"}},
  };
  for (const Case& test : kCases) Check(test);
}

TEST(JsonSchema, Patterns) {
  const Case kCases[] = {
      {R"({"type":"string","pattern":"^[a-z]{2,3}-\\d+$"})",
       {"\"ab-1\"", "\"abc-123\""},
       {"\"a-1\"", "\"ab-\"", "\"ab-1x\""}},
      {R"({"type":"string","pattern":"b+"})", {"\"abc\"", "\"b\""}, {"\"ac\""}},
      {R"({"type":"string","pattern":"^(?:a|b\"c)\\.?$"})",
       {"\"a\"", "\"b\\\"c.\""},
       {"\"b\"c\"", "\"ax\""}},
      {R"({"type":"string","pattern":"^[^a\\s]$"})",
       {"\"b\"", "\"\\\"\"", "\"\\\\\""},
       {"\"a\"", "\" \"", "\"é\""}},
      {R"({"type":"string","pattern":"^\\n$"})", {"\"\\n\""}, {"\"n\"", "\"\n\""}},
      {R"({"type":"string","pattern":"^(a|b)*?$"})", {"\"\"", "\"abba\""}, {"\"c\""}},
  };
  for (const Case& test : kCases) Check(test);
}

TEST(JsonSchema, ObjectsAndArrays) {
  const Case kCases[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["b"]})",
       {"{\"b\":true}", "{\"a\":1,\"b\":true}", "{ \"a\": 1, \"b\": true }"},
       {"{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{\"b\":true,\"c\":1}", "{\"a\":1,}"}},
      {R"({"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}}})",
       {"{}", "{\"a\":1}", "{\"a\":1,\"c\":3}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
       {"{,}", "{\"a\":1\"c\":3}", "{\"c\":3,\"a\":1}"}},
      {R"({"type":"object","properties":{"ab":{"const":1}},"additionalProperties":{"type":"null"}})",
       {"{}", "{\"ab\":1}", "{\"ab\":1,\"a\":null}", "{\"abc\":null}", "{\"\":null,\"b\":null}"},
       {"{\"ab\":null}", "{\"\\u0061b\":null}", "{\"a\":1}"}},
      {R"({"type":"object"})", {"{}", "{\"x\":[1]}"}, {"[]"}},
      {R"({"type":"object","additionalProperties":false})", {"{}"}, {"{\"x\":1}"}},
      {R"({"type":"object","required":["z"]})", {"{\"z\":{}}"}, {"{}"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1,2,3]", "[1, 2]"},
       {"[]", "[1,2,3,4]", "[true]"}},
      {R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false})",
       {"[]", "[1]", "[1,2]"},
       {"[2]", "[1,2,3]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":2,"maxItems":4})",
       {"[1,2]", "[1,2,3]", "[1,2,3,3]"},
       {"[1]", "[1,2,3,3,3]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]})",
       {"1", "[]", "[1,[2,[]]]"},
       {"\"a\"", "[true]"}},
      {R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}})",
       {"{}", "{\"next\":{\"next\":{}}}"},
       {"{\"next\":1}"}},
      {R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}}},{"properties":{"b":{"const":2}}}]})",
       {"{\"a\":1}", "{\"b\":2}"},
       {"{\"a\":1,\"b\":2}"}},
      {R"({"allOf":[{"$ref":"#/$defs/p"},{"properties":{"b":{"const":2}},"required":["b"]}],"$defs":{"p":{"type":"object","properties":{"a":{"const":1}},"required":["a"]}}})",
       {"{\"a\":1,\"b\":2}"},
       {"{\"a\":1}", "{\"b\":2}"}},
      {R"({"description":"x","allOf":[{"$ref":"#/definitions/s"}],"definitions":{"s":{"type":"string","maxLength":1}}})",
       {"\"a\""},
       {"\"ab\"", "1"}},
  };
  for (const Case& test : kCases) Check(test);
}

TEST(JsonSchema, AnyObject) {
  ASSERT_OK_AND_ASSIGN(const Grammar grammar, JsonObjectGrammar());
  for (const auto& [text, want] :
       {std::pair{"{}", true}, {"{\"a\": [1,\n  2]}", true}, {"[]", false}, {"{} ", false}}) {
    ASSERT_OK_AND_ASSIGN(const bool produced, Produces(grammar, text));
    EXPECT_EQ(produced, want) << text;
  }
}

TEST(JsonSchema, OtherFormats_AreListedAsIgnored) {
  ASSERT_OK_AND_ASSIGN(const SchemaGrammar made,
                       SchemaToGrammar(std::string_view(
                           R"({"properties":{"m":{"type":"string","format":"email"}}})")));
  EXPECT_THAT(made.ignored, ElementsAre("#/properties/m: format 'email'"));
}

TEST(JsonSchema, WhatIsNotSupported_IsNamedWithItsPath) {
  const std::pair<const char*, const char*> kCases[] = {
      {"5", "a schema is an object"},
      {"{", "line 1"},
      {R"({"properties":{"a":{"not":{}}}})", "#/properties/a: the keyword 'not' is not supported"},
      {R"({"patternProperties":{}})", "'patternProperties'"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems'"},
      {R"({"type":"number","multipleOf":2})", "'multipleOf'"},
      {R"({"type":"thing"})", "type is not one of"},
      {R"({"type":[]})", "empty list"},
      {R"({"enum":[]})", "no value is left"},
      {R"({"$ref":"other.json"})", "leads out of the document"},
      {R"({"$ref":"#/nope"})", "leads nowhere"},
      {R"({"$ref":"#"})", "can never be completed"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       "never be completed"},
      {"false", "never be completed"},
      {R"({"type":"integer","minimum":5,"maximum":4})", "never be completed"},
      {R"({"type":"string","minLength":5,"maxLength":4})", "minLength is above maxLength"},
      {R"({"type":"string","minLength":-1})", "minLength is not a whole number"},
      {R"({"type":"string","maxLength":1000000})", "repetitions"},
      {R"({"type":"string","pattern":"a","maxLength":3})", "beside a pattern"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "position 2: only (?:"},
      {R"({"type":"string","pattern":"a\\b"})", "unknown escape"},
      {R"({"type":"string","pattern":"a^b"})", "position 2"},
      {R"({"type":"string","pattern":"^a|b"})", "^ and $ beside |"},
      {R"({"type":"number","minimum":-1.5})", "'minimum' and 'maximum' of a number"},
      {R"({"type":"number","exclusiveMinimum":1})", "'exclusiveMinimum' of a number"},
      {R"({"type":"array","minItems":2,"maxItems":1})", "as many items"},
      {R"({"anyOf":[]})", "anyOf is not an array"},
      {R"({"anyOf":[{}],"properties":{}})", "'properties' beside 'anyOf'"},
      {R"({"allOf":[{"properties":{"a":{"const":1}}},{"properties":{"a":{"const":2}}}]})",
       "parts differ in the property 'a'"},
      {R"({"allOf":[{"additionalProperties":false},{"properties":{"a":{}}}]})", "forbids 'a'"},
      {R"({"allOf":[{"enum":[1]},{"type":"integer"}]})", "'enum' is not supported in parts"},
      {R"({"$ref":"#/$defs/a","type":"object","$defs":{"a":{}}})", "'type' beside '$ref'"},
  };
  for (const auto& [schema, error] : kCases) {
    EXPECT_THAT(SchemaToGrammar(std::string_view(schema)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)))
        << schema;
  }
}

TEST(JsonSchema, HostileSchemas_AreErrors) {
  std::string deep;
  for (int i = 0; i < 60000; ++i) deep += R"({"items":)";
  EXPECT_FALSE(SchemaToGrammar(std::string_view(deep)).ok());
  EXPECT_FALSE(
      SchemaToGrammar(std::string_view(absl::StrCat(deep, "{}", std::string(60000, '}')))).ok());
  EXPECT_THAT(SchemaToGrammar(std::string_view(absl::StrCat(R"({"type":"string","pattern":")",
                                                            std::string(60000, '('), "\"}")))
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested groups")));
  // References to references, and each part twice the one before.
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)",
              parts = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 500; ++i) {
    absl::StrAppend(&chain, "\"d", i, R"(":{"$ref":"#/$defs/d)", i + 1, "\"},");
  }
  EXPECT_THAT(SchemaToGrammar(std::string_view(chain + R"("d500":{}}})")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested schemas")));
  for (int i = 0; i < 40; ++i) {
    const std::string next = absl::StrCat(R"({"$ref":"#/$defs/d)", i + 1, "\"}");
    absl::StrAppend(&parts, "\"d", i, R"(":{"allOf":[)", next, ",", next, "]},");
  }
  EXPECT_THAT(SchemaToGrammar(std::string_view(parts + R"("d40":{"type":"object"}}})")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many parts")));
}

}  // namespace
}  // namespace weft
