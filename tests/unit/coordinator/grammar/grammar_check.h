// Grammars against texts, for unit tests and fuzzers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/grammar/grammar_matcher.h"
#include "coordinator/grammar/token_trie.h"

namespace weft {

// Tokens 0 to 255 are the bytes, then come `words`; the token behind all ends the text.
std::shared_ptr<const TokenTrie> MakeTrie(const std::vector<std::string>& words);

// Whether `text` is one that the grammar produces. Errors: those of the matcher.
absl::StatusOr<bool> Produces(const Grammar& grammar, std::string_view text);

// A text that the grammar produces, by tokens drawn from the masks; from `patience` tokens on it
// ends as soon as it may. Errors: those of the matcher, or none came within 20 times as many.
absl::StatusOr<std::string> RandomText(GrammarMatcher& matcher, const TokenTrie& trie,
                                       int64_t patience, Random& random);

// What fuzzers do with a grammar: walks through it, and whether masks are what single tokens say.
// Breaks off the process if not.
void CheckGrammar(const Grammar& grammar, uint64_t seed);

}  // namespace weft
