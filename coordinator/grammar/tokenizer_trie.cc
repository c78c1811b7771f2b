#include "coordinator/grammar/tokenizer_trie.h"

namespace weft {

std::shared_ptr<const TokenTrie> MakeTokenTrie(const Tokenizer& tokenizer) {
  return std::make_shared<const TokenTrie>(
      tokenizer.vocabulary_size(), [&](int32_t id) { return tokenizer.Piece(id, false); },
      [&](int32_t id) { return tokenizer.IsEndOfGeneration(id); });
}

}  // namespace weft
