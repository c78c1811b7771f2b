// Strings and numbers of a JSON schema as rules, and what all parts of schemas share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/grammar/json_rules.h"
#include "coordinator/json/checked_json.h"

namespace weft {

// INVALID_ARGUMENT for the part of a schema at `path`.
absl::Status SchemaError(const std::string& path, absl::string_view what);

// A count of 0 or more; `fallback` without the keyword.
absl::StatusOr<int64_t> CountOf(const Json& schema, const char* keyword, int64_t fallback,
                                const std::string& path);

// minLength, maxLength, pattern and format; a format that says nothing goes into `ignored`.
absl::StatusOr<GrammarElement> StringRule(const Json& schema, const std::string& path,
                                          GrammarBuilder& builder, JsonRules& json,
                                          std::vector<std::string>& ignored);
// minimum, maximum, exclusiveMinimum and exclusiveMaximum.
absl::StatusOr<GrammarElement> IntegerRule(const Json& schema, const std::string& path,
                                           JsonRules& json);
// minimum and maximum, where both are whole and not negative.
absl::StatusOr<GrammarElement> NumberRule(const Json& schema, const std::string& path,
                                          GrammarBuilder& builder, JsonRules& json);

}  // namespace weft
