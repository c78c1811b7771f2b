#include "coordinator/http/generation_fields.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr double kMost = 1e9;
constexpr size_t kShownBytes = 64;
constexpr int32_t kMostTokens = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostBiases = 1024;
constexpr double kLongestTimeout = 7 * 24 * 3600;

struct NumberField {
  std::string_view name;
  float SamplerOptions::*option;
  double least;
  double most;
};

constexpr std::array kNumberFields = {
    NumberField{"temperature", &SamplerOptions::temperature, 0, 100},
    NumberField{"top_p", &SamplerOptions::top_p, 0, 1},
    NumberField{"min_p", &SamplerOptions::min_p, 0, 1},
    NumberField{"typical_p", &SamplerOptions::typical_p, 0, 1},
    NumberField{"top_n_sigma", &SamplerOptions::top_n_sigma, -1, kMost},
    NumberField{"presence_penalty", &SamplerOptions::presence_penalty, -100, 100},
    NumberField{"frequency_penalty", &SamplerOptions::frequency_penalty, -100, 100},
    NumberField{"repeat_penalty", &SamplerOptions::repeat_penalty, 1e-3, 1e3},
    NumberField{"xtc_probability", &SamplerOptions::xtc_probability, 0, 1},
    NumberField{"xtc_threshold", &SamplerOptions::xtc_threshold, 0, 1},
    NumberField{"dynatemp_range", &SamplerOptions::dynatemp_range, 0, 100},
    NumberField{"dynatemp_exponent", &SamplerOptions::dynatemp_exponent, 0, 100},
    NumberField{"mirostat_tau", &SamplerOptions::mirostat_tau, 0, kMost},
    NumberField{"mirostat_eta", &SamplerOptions::mirostat_eta, 0, kMost},
};

struct DryNumberField {
  std::string_view name;
  float DryOptions::*option;
};

constexpr std::array kDryNumberFields = {
    DryNumberField{"dry_multiplier", &DryOptions::multiplier},
    DryNumberField{"dry_base", &DryOptions::base},
};

struct IntegerField {
  std::string_view name;
  int32_t SamplerOptions::*option;
  int64_t least;
};

constexpr std::array kIntegerFields = {
    IntegerField{"top_k", &SamplerOptions::top_k, -1},
    IntegerField{"repeat_last_n", &SamplerOptions::penalty_window, -1},
    IntegerField{"min_keep", &SamplerOptions::min_keep, 0},
};

struct DryIntegerField {
  std::string_view name;
  int32_t DryOptions::*option;
  int64_t least;
};

constexpr std::array kDryIntegerFields = {
    DryIntegerField{"dry_allowed_length", &DryOptions::allowed_length, 0},
    DryIntegerField{"dry_penalty_last_n", &DryOptions::window, -1},
};

constexpr std::array<std::string_view, 17> kOtherFields = {
    "model", "max_tokens", "n", "stop", "stream", "seed", "logit_bias", "grammar", "ignore_eos",
    "stream_options", "mirostat", "timeout", "response_format", "dry_sequence_breakers",
    // Whose values change nothing here. Prompts are always looked up in the cache.
    "user", "cache_prompt", "metadata"};

// Also ignored: how the provider keeps and prices a request.
constexpr std::array<std::string_view, 5> kForProviders = {
    "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"};

absl::Status ReadNumbers(const JsonValue& body, SamplerOptions& sampler) {
  for (const NumberField& field : kNumberFields) {
    const std::optional<JsonValue> value = body.Find(field.name);
    if (!value) continue;
    ASSIGN_OR_RETURN(const double number, value->Number(field.least, field.most));
    sampler.*field.option = static_cast<float>(number);
  }
  for (const DryNumberField& field : kDryNumberFields) {
    const std::optional<JsonValue> value = body.Find(field.name);
    if (!value) continue;
    ASSIGN_OR_RETURN(const double number, value->Number(0, kMost));
    sampler.dry.*field.option = static_cast<float>(number);
  }
  for (const IntegerField& field : kIntegerFields) {
    ASSIGN_OR_RETURN(const int64_t number, ReadInteger(body, field.name, sampler.*field.option,
                                                       field.least, kMostTokens));
    sampler.*field.option = static_cast<int32_t>(number);
  }
  for (const DryIntegerField& field : kDryIntegerFields) {
    ASSIGN_OR_RETURN(const int64_t number, ReadInteger(body, field.name, sampler.dry.*field.option,
                                                       field.least, kMostTokens));
    sampler.dry.*field.option = static_cast<int32_t>(number);
  }
  ASSIGN_OR_RETURN(const int64_t mirostat,
                   ReadInteger(body, "mirostat", static_cast<int64_t>(sampler.mirostat), 0, 2));
  sampler.mirostat = static_cast<Mirostat>(mirostat);
  return absl::OkStatus();
}

// {"15043": -100, ...}: token ids as texts.
absl::Status ReadBiases(const JsonValue& body, SamplerOptions& sampler) {
  const std::optional<JsonValue> biases = body.Find("logit_bias");
  if (!biases) return absl::OkStatus();
  if (!biases->is_object()) return biases->Error("want an object of token ids and biases");
  if (static_cast<int64_t>(biases->json().size()) > kMostBiases) {
    return biases->Error(absl::StrCat("more than ", kMostBiases, " tokens"));
  }
  for (const auto& [key, value] : biases->json().items()) {
    const JsonValue bias(value, absl::StrCat("logit_bias.", key.substr(0, 32)));
    int32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id < 0) return bias.Error("want a token id as key");
    ASSIGN_OR_RETURN(const double number, bias.Number(-100, 100));
    sampler.logit_bias.push_back({id, static_cast<float>(number)});
  }
  return absl::OkStatus();
}

absl::Status ReadStreaming(const JsonValue& body, GenerationFields& fields) {
  ASSIGN_OR_RETURN(fields.stream, ReadBool(body, "stream", false));
  const std::optional<JsonValue> options = body.Find("stream_options");
  if (!options) return absl::OkStatus();
  if (!fields.stream) return options->Error("only with stream");
  RETURN_IF_ERROR(options->CheckKeys({"include_usage", "include_obfuscation"}));
  ASSIGN_OR_RETURN(fields.include_usage, ReadBool(*options, "include_usage", false));
  return absl::OkStatus();
}

absl::Status ReadFormat(const JsonValue& body, GenerationFields& fields) {
  if (const std::optional<JsonValue> grammar = body.Find("grammar")) {
    ASSIGN_OR_RETURN(fields.grammar, grammar->String(kLongestGrammar));
    if (!fields.grammar.empty()) fields.format = OutputFormat::kGrammar;
  }
  const std::optional<JsonValue> format = body.Find("response_format");
  if (!format) return absl::OkStatus();
  if (!format->is_object()) return format->Error("want an object");
  ASSIGN_OR_RETURN(const JsonValue type, format->At("type"));
  ASSIGN_OR_RETURN(const std::string text, type.Text(kLongestName));
  const std::string_view name = text;
  if (name == "text") return format->CheckKeys({"type"});
  if (fields.format == OutputFormat::kGrammar) return format->Error("not together with grammar");
  if (name == "json_object") {
    fields.format = OutputFormat::kJsonObject;
    return format->CheckKeys({"type"});
  }
  if (name != "json_schema") return type.Error("want text, json_object or json_schema");
  RETURN_IF_ERROR(format->CheckKeys({"type", "json_schema"}));
  ASSIGN_OR_RETURN(const JsonValue named, format->At("json_schema"));
  RETURN_IF_ERROR(named.CheckKeys({"name", "description", "schema", "strict"}));
  RETURN_IF_ERROR(ReadBool(named, "strict", true).status());
  ASSIGN_OR_RETURN(const JsonValue schema, named.At("schema"));
  if (!schema.is_object()) return schema.Error("want an object");
  fields.format = OutputFormat::kJsonSchema;
  fields.schema = schema.json();
  return absl::OkStatus();
}

absl::Status ReadSeed(const JsonValue& body, GenerationFields& fields) {
  const std::optional<JsonValue> seed = body.Find("seed");
  if (!seed) return absl::OkStatus();
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t number, seed->Integer(-kLimit, kLimit));
  // -1 is the field's word for a random one.
  if (number != -1) fields.seed = static_cast<uint64_t>(number);
  return absl::OkStatus();
}

absl::Status ReadEnds(const JsonValue& body, GenerationFields& fields) {
  ASSIGN_OR_RETURN(fields.max_tokens, ReadInteger(body, "max_tokens", -1, 1, kMostTokens));
  ASSIGN_OR_RETURN(fields.choices, ReadInteger(body, "n", 1, 1, kMostChoices));
  ASSIGN_OR_RETURN(fields.ignore_end, ReadBool(body, "ignore_eos", false));
  if (const std::optional<JsonValue> stop = body.Find("stop")) {
    ASSIGN_OR_RETURN(fields.stop, ReadTexts(*stop, kMostStops, kLongestStop));
    for (const std::string& text : fields.stop) {
      if (text.empty()) return stop->Error("a text is empty");
    }
  }
  if (const std::optional<JsonValue> timeout = body.Find("timeout")) {
    ASSIGN_OR_RETURN(fields.timeout_seconds, timeout->Number(1e-3, kLongestTimeout));
  }
  return absl::OkStatus();
}

// Names of the fields that are read here or change nothing.
std::vector<std::string_view> KnownFields() {
  std::vector<std::string_view> names(kOtherFields.begin(), kOtherFields.end());
  names.insert(names.end(), kForProviders.begin(), kForProviders.end());
  for (const auto& field : kNumberFields) names.push_back(field.name);
  for (const auto& field : kDryNumberFields) names.push_back(field.name);
  for (const auto& field : kIntegerFields) names.push_back(field.name);
  for (const auto& field : kDryIntegerFields) names.push_back(field.name);
  return names;
}

}  // namespace

absl::StatusOr<GenerationFields> ReadGenerationFields(const JsonValue& body,
                                                      const SamplerOptions& defaults,
                                                      const std::vector<std::string_view>& others) {
  std::vector<std::string_view> known = KnownFields();
  known.insert(known.end(), others.begin(), others.end());
  RETURN_IF_ERROR(CheckFields(body, known));
  GenerationFields fields;
  fields.sampler = defaults;
  ASSIGN_OR_RETURN(fields.model, ReadModel(body));
  RETURN_IF_ERROR(ReadNumbers(body, fields.sampler));
  RETURN_IF_ERROR(ReadBiases(body, fields.sampler));
  RETURN_IF_ERROR(ReadSeed(body, fields));
  RETURN_IF_ERROR(ReadEnds(body, fields));
  RETURN_IF_ERROR(ReadStreaming(body, fields));
  RETURN_IF_ERROR(ReadFormat(body, fields));
  if (const std::optional<JsonValue> breakers = body.Find("dry_sequence_breakers")) {
    ASSIGN_OR_RETURN(fields.dry_breakers,
                     ReadTexts(*breakers, kMostDryBreakers, kLongestDryBreaker));
  }
  return fields;
}

absl::Status CheckFields(const JsonValue& body, const std::vector<std::string_view>& known) {
  if (!body.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  for (const auto& [key, value] : body.json().items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(EscapedText(key, kShownBytes), ": this server knows no such field here"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadModel(const JsonValue& body) {
  const std::optional<JsonValue> model = body.Find("model");
  if (!model) return std::string();
  return model->Text(kLongestName);
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const JsonValue& value, int64_t most,
                                                   size_t most_bytes) {
  std::vector<std::string> texts;
  if (value.is_string()) {
    ASSIGN_OR_RETURN(texts.emplace_back(), value.String(most_bytes));
    return texts;
  }
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, value.Elements(most));
  for (const JsonValue& element : elements) {
    ASSIGN_OR_RETURN(texts.emplace_back(), element.String(most_bytes));
  }
  return texts;
}

absl::StatusOr<bool> ReadBool(const JsonValue& body, std::string_view name, bool fallback) {
  const std::optional<JsonValue> value = body.Find(name);
  if (!value) return fallback;
  return value->Bool();
}

absl::StatusOr<int64_t> ReadInteger(const JsonValue& body, std::string_view name, int64_t fallback,
                                    int64_t least, int64_t most) {
  const std::optional<JsonValue> value = body.Find(name);
  if (!value) return fallback;
  return value->Integer(least, most);
}

}  // namespace weft
