#include "coordinator/http/grammar_constraints.h"

#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/grammar_matcher.h"
#include "coordinator/grammar/json_schema.h"

namespace weft {

ConstraintMaker FollowGrammar(Grammar grammar, std::shared_ptr<const TokenTrie> trie) {
  return [shared = std::make_shared<const Grammar>(std::move(grammar)),
          trie = std::move(trie)]() -> absl::StatusOr<std::unique_ptr<TokenConstraint>> {
    absl::StatusOr<std::unique_ptr<GrammarMatcher>> matcher = GrammarMatcher::Create(shared, trie);
    // Whatever a grammar is too much for, it is the request's.
    if (!matcher.ok()) return absl::InvalidArgumentError(matcher.status().message());
    return std::unique_ptr<TokenConstraint>(*std::move(matcher));
  };
}

absl::StatusOr<ConstraintMaker> GrammarConstraints::OfGrammar(std::string_view gbnf) const {
  ASSIGN_OR_RETURN(Grammar grammar, ParseGbnf(gbnf));
  return FollowGrammar(std::move(grammar), trie_);
}

absl::StatusOr<ConstraintMaker> GrammarConstraints::OfSchema(const Json& schema) const {
  ASSIGN_OR_RETURN(SchemaGrammar made, SchemaToGrammar(schema));
  return FollowGrammar(std::move(made.grammar), trie_);
}

absl::StatusOr<ConstraintMaker> GrammarConstraints::OfJsonObject() const {
  ASSIGN_OR_RETURN(Grammar grammar, JsonObjectGrammar());
  return FollowGrammar(std::move(grammar), trie_);
}

}  // namespace weft
