// The trie of a model's tokens.
#pragma once

#include <memory>

#include "coordinator/grammar/token_trie.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

// What each token adds to a text, and which end it. Takes a tenth of a second for large
// vocabularies.
std::shared_ptr<const TokenTrie> MakeTokenTrie(const Tokenizer& tokenizer);

}  // namespace weft
