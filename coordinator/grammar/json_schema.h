// JSON Schema as a grammar: every text that it allows is JSON that the schema validates (with
// stated exceptions), though not every such JSON is allowed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/json/checked_json.h"

namespace weft {

struct SchemaGrammar {
  Grammar grammar;
  std::vector<std::string> ignored;  // path and keyword of what was passed over, e.g. a format
};

// Takes type (also lists), properties, required, additionalProperties, items, prefixItems,
// minItems, maxItems, enum, const, anyOf, oneOf (as anyOf: that only one matches is not seen to),
// allOf of objects, $ref within the document, minLength, maxLength, pattern (see regex_rules.h),
// format (date, time, date-time, uuid; others are ignored), minimum, maximum, exclusiveMinimum and
// exclusiveMaximum of integers, minimum and maximum of numbers where they are whole and not
// negative, nullable, and annotations. Members come in the order of `properties`; other members
// only if additionalProperties says so or there are no properties.
// Errors: INVALID_ARGUMENT with the path of the keyword that is unknown, not supported or wrong;
// a limit; a schema that nothing satisfies.
absl::StatusOr<SchemaGrammar> SchemaToGrammar(const Json& schema, const GrammarLimits& limits = {});
absl::StatusOr<SchemaGrammar> SchemaToGrammar(std::string_view schema,
                                              const GrammarLimits& limits = {});

// The same as a part of a grammar that is being built. After an error the grammar is of no use.
absl::StatusOr<GrammarElement> AddSchema(const Json& schema, GrammarBuilder& builder,
                                         std::vector<std::string>& ignored);

// Any JSON object.
absl::StatusOr<Grammar> JsonObjectGrammar();

}  // namespace weft
