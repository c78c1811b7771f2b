// Grammars and JSON schemas of requests, for one vocabulary.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/grammar/token_trie.h"
#include "coordinator/http/chat_format.h"

namespace weft {

// Continuations that follow `grammar`. Errors of making one: INVALID_ARGUMENT for a grammar that is
// too much.
ConstraintMaker FollowGrammar(Grammar grammar, std::shared_ptr<const TokenTrie> trie);

class GrammarConstraints final : public OutputConstraints {
 public:
  // `trie`: of the model's tokens.
  explicit GrammarConstraints(std::shared_ptr<const TokenTrie> trie) : trie_(std::move(trie)) {}

  absl::StatusOr<ConstraintMaker> OfGrammar(std::string_view gbnf) const override;
  absl::StatusOr<ConstraintMaker> OfSchema(const Json& schema) const override;
  absl::StatusOr<ConstraintMaker> OfJsonObject() const override;

 private:
  std::shared_ptr<const TokenTrie> trie_;
};

}  // namespace weft
