#include "coordinator/grammar/tokenizer_trie.h"

#include <string>

#include "coordinator/grammar/grammar.h"

namespace weft {
namespace {

// What a token adds to a text; control tokens as TokenBytes, which no other token may hold.
std::string BytesFor(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.vocabulary().type(id) == TokenType::kControl) {
    return id <= kMostToken ? TokenBytes(id) : "";
  }
  std::string piece = tokenizer.Piece(id, false);
  for (const char byte : piece) {
    if (static_cast<uint8_t>(byte) >= 0xF8) return "";  // nowhere in UTF-8
  }
  return piece;
}

}  // namespace

std::shared_ptr<const TokenTrie> MakeTokenTrie(const Tokenizer& tokenizer) {
  return std::make_shared<const TokenTrie>(
      tokenizer.vocabulary_size(), [&](int32_t id) { return BytesFor(tokenizer, id); },
      [&](int32_t id) { return tokenizer.IsEndOfGeneration(id); });
}

}  // namespace weft
