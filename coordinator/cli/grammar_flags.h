// The flags that say what form the text must have.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "coordinator/grammar/grammar_matcher.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace CLI {
class App;
}

namespace weft {

struct GrammarFlags {
  std::string grammar;      // file
  std::string json_schema;  // file or text

  bool any() const { return !grammar.empty() || !json_schema.empty(); }
};

void AddGrammarFlags(CLI::App& command, GrammarFlags& flags);

// What follows the text, for flags of which any() is true; says what of a schema is ignored.
// Errors: INVALID_ARGUMENT naming the flag; NOT_FOUND for a file.
absl::StatusOr<std::unique_ptr<GrammarMatcher>> MakeMatcher(const GrammarFlags& flags,
                                                            const Tokenizer& tokenizer,
                                                            Logger& logger);

}  // namespace weft
