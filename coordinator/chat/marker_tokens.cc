#include "coordinator/chat/marker_tokens.h"

#include "common/base/absl_view.h"

namespace weft {

MarkerTokens::MarkerTokens(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.vocabulary().type(id) != TokenType::kControl) continue;
    tokens_.try_emplace(std::string(tokenizer.vocabulary().text(id)),
                        Token{id, tokenizer.IsEndOfGeneration(id)});
  }
}

std::optional<MarkerTokens::Token> MarkerTokens::Find(std::string_view text) const {
  const auto found = tokens_.find(AbslView(text));
  if (found == tokens_.end()) return std::nullopt;
  return found->second;
}

}  // namespace weft
