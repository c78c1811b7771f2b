// Grammars as people write them for language models: GBNF.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/grammar.h"

namespace weft {

// Reads rules `name ::= alternatives`: alternatives by |, groups (), "text", classes [a-z] and
// [^a-z], any character ., references, repetitions * + ? {m} {m,} {m,n}, comments from # on.
// Escapes: \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH. A rule goes on over lines until the
// next name with ::=. The text starts with rule `root`.
// Errors: INVALID_ARGUMENT with line and column, or naming a rule; see GrammarBuilder::Finish.
absl::StatusOr<Grammar> ParseGbnf(std::string_view text, const GrammarLimits& limits = {});
// The same as a part of a grammar that is being built. After an error the grammar is of no use.
absl::StatusOr<GrammarElement> AddGbnf(std::string_view text, GrammarBuilder& builder);

}  // namespace weft
