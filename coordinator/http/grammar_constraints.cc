#include "coordinator/http/grammar_constraints.h"

#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/grammar_matcher.h"
#include "coordinator/grammar/json_schema.h"

namespace weft {

absl::StatusOr<std::unique_ptr<TokenConstraint>> FollowGrammar(
    std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie) {
  absl::StatusOr<std::unique_ptr<GrammarMatcher>> matcher =
      GrammarMatcher::Create(std::move(grammar), std::move(trie));
  // Whatever a grammar is too much for, it is the request's.
  if (!matcher.ok()) return absl::InvalidArgumentError(matcher.status().message());
  return std::unique_ptr<TokenConstraint>(*std::move(matcher));
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> GrammarConstraints::OfGrammar(
    std::string_view gbnf) const {
  ASSIGN_OR_RETURN(Grammar grammar, ParseGbnf(gbnf));
  return FollowGrammar(std::make_shared<const Grammar>(std::move(grammar)), trie_);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> GrammarConstraints::OfSchema(
    const Json& schema) const {
  ASSIGN_OR_RETURN(SchemaGrammar made, SchemaToGrammar(schema));
  return FollowGrammar(std::make_shared<const Grammar>(std::move(made.grammar)), trie_);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> GrammarConstraints::OfJsonObject() const {
  ASSIGN_OR_RETURN(Grammar grammar, JsonObjectGrammar());
  return FollowGrammar(std::make_shared<const Grammar>(std::move(grammar)), trie_);
}

}  // namespace weft
