// Grammars and JSON schemas of requests, for one vocabulary.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/token_trie.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

class GrammarConstraints final : public OutputConstraints {
 public:
  explicit GrammarConstraints(const Tokenizer& tokenizer);

  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfGrammar(std::string_view gbnf) const override;
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfSchema(const Json& schema) const override;
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfJsonObject() const override;

 private:
  std::shared_ptr<const TokenTrie> trie_;
};

}  // namespace weft
