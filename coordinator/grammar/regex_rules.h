// The regular expressions of JSON Schema's `pattern`, as rules for the inside of a JSON string.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/grammar/json_rules.h"

namespace weft {

// Texts that `pattern` matches somewhere, or as a whole where ^ begins and $ ends it. Takes:
// characters, . \d \D \w \W \s \S (ASCII), classes, groups ( ) (?: ), |, * + ? {m,n} with or
// without ? behind (which changes no text), \n \r \t \f \v \xHH \uHHHH, escaped punctuation. ^ and
// $ only at the ends of the whole pattern, outside of its alternatives. Errors: INVALID_ARGUMENT
// with the position of what is something else.
absl::StatusOr<GrammarSequence> RegexRules(std::string_view pattern, GrammarBuilder& builder,
                                           JsonRules& json);

}  // namespace weft
