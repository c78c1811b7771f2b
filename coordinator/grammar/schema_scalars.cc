#include "coordinator/grammar/schema_scalars.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "coordinator/grammar/regex_rules.h"

namespace weft {
namespace {

constexpr double kMostBound = 9e15;  // whole numbers that a double holds, with room

// Formats as patterns. A day is one that every year has.
struct Format {
  const char* name;
  const char* pattern;
};
#define WEFT_DATE                                                                 \
  "[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-" \
  "(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define WEFT_TIME                                                \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?" \
  "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
constexpr Format kFormats[] = {
    {"date", "^" WEFT_DATE "$"},
    {"time", "^" WEFT_TIME "$"},
    {"date-time", "^" WEFT_DATE "T" WEFT_TIME "$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
};
#undef WEFT_DATE
#undef WEFT_TIME

// A finite number of that keyword, if it is there.
absl::StatusOr<std::optional<double>> Bound(const Json& schema, const char* keyword,
                                            const std::string& path) {
  if (!schema.contains(keyword)) return std::optional<double>();
  const double value = schema[keyword].is_number() ? schema[keyword].get<double>() : NAN;
  if (!(std::abs(value) <= kMostBound)) {
    return SchemaError(path, absl::StrCat(keyword, " is not a number between -9e15 and 9e15"));
  }
  return std::optional<double>(value);
}

}  // namespace

absl::Status SchemaError(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("JSON schema: ", absl::string_view(path).substr(0, 400), ": ", what));
}

absl::StatusOr<int64_t> CountOf(const Json& schema, const char* keyword, int64_t fallback,
                                const std::string& path) {
  if (!schema.contains(keyword)) return fallback;
  const Json& value = schema[keyword];
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= kMostBound) || std::floor(number) != number) {
    return SchemaError(path, absl::StrCat(keyword, " is not a whole number of 0 or more"));
  }
  return static_cast<int64_t>(number);
}

absl::StatusOr<GrammarElement> StringRule(const Json& schema, const std::string& path,
                                          GrammarBuilder& builder, JsonRules& json,
                                          std::vector<std::string>& ignored) {
  const GrammarElement quote = json.Ascii("\"");
  const bool bounded = schema.contains("minLength") || schema.contains("maxLength");
  std::string pattern;
  if (schema.contains("format")) {
    if (!schema["format"].is_string()) return SchemaError(path, "format is not a text");
    const std::string& name = schema["format"].get_ref<const std::string&>();
    for (const Format& format : kFormats) {
      if (name == format.name) pattern = format.pattern;
    }
    if (pattern.empty()) ignored.push_back(absl::StrCat(path, ": format '", name, "'"));
  }
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string()) return SchemaError(path, "pattern is not a text");
    if (!pattern.empty()) return SchemaError(path, "'pattern' beside 'format' is not supported");
    pattern = schema["pattern"].get<std::string>();
  }
  if (schema.contains("pattern") || !pattern.empty()) {
    if (bounded) {
      return SchemaError(path,
                         "'minLength' or 'maxLength' beside a pattern or format is not supported");
    }
    absl::StatusOr<GrammarSequence> text = RegexRules(pattern, builder, json);
    if (!text.ok()) return SchemaError(path, text.status().message());
    text->insert(text->begin(), quote);
    text->push_back(quote);
    return builder.Choice({*std::move(text)});
  }
  if (!bounded) return json.String();
  ASSIGN_OR_RETURN(const int64_t least, CountOf(schema, "minLength", 0, path));
  ASSIGN_OR_RETURN(const int64_t most, CountOf(schema, "maxLength", -1, path));
  if (most >= 0 && least > most) return SchemaError(path, "minLength is above maxLength");
  GrammarSequence text = {quote};
  const GrammarSequence inner = builder.Repeat({json.Character()}, least, most);
  text.insert(text.end(), inner.begin(), inner.end());
  text.push_back(quote);
  return builder.Choice({std::move(text)});
}

absl::StatusOr<GrammarElement> IntegerRule(const Json& schema, const std::string& path,
                                           JsonRules& json) {
  ASSIGN_OR_RETURN(const std::optional<double> minimum, Bound(schema, "minimum", path));
  ASSIGN_OR_RETURN(const std::optional<double> maximum, Bound(schema, "maximum", path));
  ASSIGN_OR_RETURN(const std::optional<double> above, Bound(schema, "exclusiveMinimum", path));
  ASSIGN_OR_RETURN(const std::optional<double> below, Bound(schema, "exclusiveMaximum", path));
  std::optional<int64_t> least, most;
  if (minimum) least = static_cast<int64_t>(std::ceil(*minimum));
  if (above) {
    const auto next = static_cast<int64_t>(std::floor(*above)) + 1;
    least = least ? std::max(*least, next) : next;
  }
  if (maximum) most = static_cast<int64_t>(std::floor(*maximum));
  if (below) {
    const auto next = static_cast<int64_t>(std::ceil(*below)) - 1;
    most = most ? std::min(*most, next) : next;
  }
  return json.IntegerOf(least, most);
}

absl::StatusOr<GrammarElement> NumberRule(const Json& schema, const std::string& path,
                                          GrammarBuilder& builder, JsonRules& json) {
  for (const char* keyword : {"exclusiveMinimum", "exclusiveMaximum"}) {
    if (schema.contains(keyword)) {
      return SchemaError(path,
                         absl::StrCat("the keyword '", keyword, "' of a number is not supported"));
    }
  }
  ASSIGN_OR_RETURN(const std::optional<double> minimum, Bound(schema, "minimum", path));
  ASSIGN_OR_RETURN(const std::optional<double> maximum, Bound(schema, "maximum", path));
  if (!minimum && !maximum) return json.Number();
  const auto whole = [](const std::optional<double>& x) { return !x || std::floor(*x) == *x; };
  if (!minimum || *minimum < 0 || !whole(minimum) || !whole(maximum)) {
    return SchemaError(
        path,
        "'minimum' and 'maximum' of a number are supported where the minimum is there "
        "and both are whole and not negative");
  }
  const auto least = static_cast<int64_t>(*minimum);
  const GrammarSequence fraction = builder.Optional({json.Ascii("."), json.Digits(1, 16)});
  GrammarSequence open = {json.IntegerOf(least, std::nullopt)};
  std::vector<GrammarSequence> ways;
  if (maximum) {
    // Fractions only below the largest.
    const auto most = static_cast<int64_t>(*maximum);
    if (most < least) return SchemaError(path, "minimum is above maximum");
    ways.push_back({json.IntegerOf(most, most)});
    if (most > least) open = {json.IntegerOf(least, most - 1)};
    if (most == least) return builder.Choice(std::move(ways));
  }
  open.insert(open.end(), fraction.begin(), fraction.end());
  ways.push_back(std::move(open));
  return builder.Choice(std::move(ways));
}

}  // namespace weft
