#include "coordinator/http/generation_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/http/schema_cases.h"

namespace weft {
namespace {

using testing::ElementsAre;

absl::StatusOr<GenerationFields> Read(const std::string& body) {
  absl::StatusOr<Json> json = ParseJson(body, {});
  if (!json.ok()) return json.status();
  return ReadGenerationFields(JsonValue(*json), SamplerOptions(), {"prompt"});
}

TEST(GenerationFields, EmptyBody_KeepsDefaults) {
  SamplerOptions defaults;
  defaults.temperature = 0.25f;
  defaults.logit_bias = {{7, -1}};
  const Json json = Json::object();
  ASSERT_OK_AND_ASSIGN(const GenerationFields fields,
                       ReadGenerationFields(JsonValue(json), defaults, {}));
  EXPECT_EQ(fields.sampler.temperature, 0.25f);
  EXPECT_EQ(fields.sampler.logit_bias.size(), 1);
  EXPECT_EQ(fields.max_tokens, -1);
  EXPECT_EQ(fields.choices, 1);
  EXPECT_FALSE(fields.seed.has_value());
  EXPECT_FALSE(fields.stream);
  EXPECT_EQ(fields.format, OutputFormat::kText);
}

TEST(GenerationFields, EveryField_ArrivesInItsOption) {
  ASSERT_OK_AND_ASSIGN(const GenerationFields fields, Read(R"({
      "model": "m", "prompt": 1, "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.01,
      "typical_p": 0.8, "top_n_sigma": 2, "presence_penalty": 1.5, "frequency_penalty": -1.5,
      "repeat_penalty": 1.1, "repeat_last_n": 33, "xtc_probability": 0.3, "xtc_threshold": 0.2,
      "dynatemp_range": 0.4, "dynatemp_exponent": 2, "dry_multiplier": 0.7, "dry_base": 1.5,
      "dry_allowed_length": 3, "dry_penalty_last_n": 99, "dry_sequence_breakers": ["\n", ":"],
      "mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "min_keep": 2,
      "logit_bias": {"5": -100, "6": 1.5}, "seed": 42, "max_tokens": 9, "n": 3,
      "stop": ["a", "b"], "ignore_eos": true, "stream": true,
      "stream_options": {"include_usage": true}, "timeout": 2.5, "user": "u",
      "cache_prompt": true})"));
  const SamplerOptions& s = fields.sampler;
  EXPECT_EQ(fields.model, "m");
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_p, 0.9f);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_EQ(s.min_p, 0.01f);
  EXPECT_EQ(s.typical_p, 0.8f);
  EXPECT_EQ(s.top_n_sigma, 2);
  EXPECT_EQ(s.presence_penalty, 1.5f);
  EXPECT_EQ(s.frequency_penalty, -1.5f);
  EXPECT_EQ(s.repeat_penalty, 1.1f);
  EXPECT_EQ(s.penalty_window, 33);
  EXPECT_EQ(s.xtc_probability, 0.3f);
  EXPECT_EQ(s.xtc_threshold, 0.2f);
  EXPECT_EQ(s.dynatemp_range, 0.4f);
  EXPECT_EQ(s.dynatemp_exponent, 2);
  EXPECT_EQ(s.dry.multiplier, 0.7f);
  EXPECT_EQ(s.dry.base, 1.5f);
  EXPECT_EQ(s.dry.allowed_length, 3);
  EXPECT_EQ(s.dry.window, 99);
  EXPECT_EQ(s.mirostat, Mirostat::kVersion2);
  EXPECT_EQ(s.mirostat_tau, 4);
  EXPECT_EQ(s.mirostat_eta, 0.2f);
  EXPECT_EQ(s.min_keep, 2);
  ASSERT_EQ(s.logit_bias.size(), 2);
  EXPECT_EQ(s.logit_bias[1].id, 6);
  EXPECT_EQ(s.logit_bias[1].bias, 1.5f);
  EXPECT_EQ(fields.seed, 42);
  EXPECT_EQ(fields.max_tokens, 9);
  EXPECT_EQ(fields.choices, 3);
  EXPECT_THAT(fields.stop, ElementsAre("a", "b"));
  EXPECT_TRUE(fields.ignore_end);
  EXPECT_TRUE(fields.stream);
  EXPECT_TRUE(fields.include_usage);
  EXPECT_EQ(fields.timeout_seconds, 2.5);
  EXPECT_THAT(*fields.dry_breakers, ElementsAre("\n", ":"));
}

TEST(GenerationFields, Nulls_AreAsMissing) {
  ASSERT_OK_AND_ASSIGN(
      const GenerationFields fields,
      Read(R"({"model": null, "temperature": null, "stop": null, "seed": null, "n": null,
               "stream": null, "stream_options": null, "logit_bias": null,
               "response_format": null, "max_tokens": null})"));
  EXPECT_EQ(fields.sampler.temperature, SamplerOptions().temperature);
  EXPECT_TRUE(fields.stop.empty());
}

TEST(GenerationFields, ResponseFormats_AreTold) {
  EXPECT_EQ(Read(R"({"response_format": {"type": "text"}})")->format, OutputFormat::kText);
  EXPECT_EQ(Read(R"({"response_format": {"type": "json_object"}})")->format,
            OutputFormat::kJsonObject);
  ASSERT_OK_AND_ASSIGN(
      const GenerationFields schema,
      Read(R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x",
               "strict": true, "schema": {"type": "object", "properties": {"b": {}, "a": {}}}}}})"));
  EXPECT_EQ(schema.format, OutputFormat::kJsonSchema);
  EXPECT_EQ(schema.schema.dump(), R"({"type":"object","properties":{"b":{},"a":{}}})");
  ASSERT_OK_AND_ASSIGN(const GenerationFields grammar, Read(R"({"grammar": "root ::= \"a\""})"));
  EXPECT_EQ(grammar.format, OutputFormat::kGrammar);
  EXPECT_EQ(grammar.grammar, "root ::= \"a\"");
}

TEST(GenerationFields, SeedOfMinusOne_IsNoSeed) {
  EXPECT_FALSE(Read(R"({"seed": -1})")->seed.has_value());
  EXPECT_EQ(Read(R"({"seed": 0})")->seed, 0);
  EXPECT_EQ(Read(R"({"seed": -2})")->seed, static_cast<uint64_t>(-2));
}

TEST(GenerationFields, WrongValues_NameTheField) {
  CheckRefusals(
      {
          {"[]", "", "not a JSON object"},
          {"{", "", "line 1"},
          {R"({"temprature": 1})", "temprature", "knows no such field"},
          {R"({"model": 5})", "model", "want a text"},
          {R"({"model": ""})", "model", "0 bytes"},
          {R"({"temperature": "hot"})", "temperature", "want a number"},
          {R"({"temperature": -0.1})", "temperature", "from 0"},
          {R"({"temperature": 1e99})", "temperature", "want a number"},
          {R"({"temperature": 1e999})", "", "1e999"},
          {R"({"top_p": 1.01})", "top_p", "from 0 to 1"},
          {R"({"min_p": -1})", "min_p", "from 0"},
          {R"({"top_k": 1.5})", "top_k", "want an integer"},
          {R"({"top_k": 99999999999})", "top_k", "want an integer"},
          {R"({"repeat_penalty": 0})", "repeat_penalty", "from 0.001"},
          {R"({"repeat_last_n": -2})", "repeat_last_n", "from -1"},
          {R"({"dry_multiplier": -1})", "dry_multiplier", "from 0"},
          {R"({"dry_sequence_breakers": [1]})", "dry_sequence_breakers[0]", "want a text"},
          {R"({"mirostat": 3})", "mirostat", "from 0 to 2"},
          {R"({"logit_bias": []})", "logit_bias", "want an object"},
          {R"({"logit_bias": {"x": 1}})", "logit_bias.x", "token id"},
          {R"({"logit_bias": {"-1": 1}})", "", "token id"},
          {R"({"logit_bias": {"1": 101}})", "logit_bias.1", "from -100 to 100"},
          {R"({"seed": "x"})", "seed", "want an integer"},
          {R"({"n": 0})", "n", "from 1"},
          {R"({"n": 129})", "n", "to 128"},
          {R"({"n": 18446744073709551615})", "n", "want an integer"},
          {R"({"max_tokens": 0})", "max_tokens", "from 1"},
          {R"({"max_tokens": -1})", "max_tokens", "from 1"},
          {R"({"stop": ""})", "stop", "empty"},
          {R"({"stop": ["a", ""]})", "stop", "empty"},
          {R"({"stop": [["a"]]})", "stop[0]", "want a text"},
          {R"({"stop": 5})", "stop", "want an array"},
          {R"({"stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]})",
           "stop", "the limit is 16"},
          {R"({"stream": 1})", "stream", "true or false"},
          {R"({"stream_options": {}})", "stream_options", "only with stream"},
          {R"({"stream": true, "stream_options": {"x": 1}})", "stream_options", "unknown key"},
          {R"({"timeout": 0})", "timeout", "want a number"},
          {R"({"response_format": "json"})", "response_format", "want an object"},
          {R"({"response_format": {}})", "response_format.type", "is missing"},
          {R"({"response_format": {"type": "xml"}})", "response_format.type", "json_schema"},
          {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema",
           "is missing"},
          {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": 1}}})",
           "response_format.json_schema.schema", "want an object"},
          {R"({"grammar": "root ::= x", "response_format": {"type": "json_object"}})",
           "response_format", "not together"},
          {R"({"ignore_eos": "yes"})", "ignore_eos", "true or false"},
      },
      Read);
}

}  // namespace
}  // namespace weft
