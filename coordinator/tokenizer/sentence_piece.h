// SentencePiece-style tokens: characters are merged to the token with the highest score, unknown
// ones become bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/tokenizer/vocabulary.h"

namespace weft {

class SentencePieceEncoder {
 public:
  // `vocabulary` must outlive the encoder. `unknown` stands for characters that have neither a
  // token nor byte tokens; kNoToken makes those an error.
  SentencePieceEncoder(const Vocabulary& vocabulary, TokenId unknown);

  // Appends the tokens of `text` (less than 2^31 bytes), in which spaces are U+2581 already. Bytes
  // that are not UTF-8 count as characters of the length that their lead byte announces, cut at the
  // end of the text. Adds the number of queue operations to `work` unless that is null.
  // Errors: INVALID_ARGUMENT for a character that the vocabulary cannot express.
  // Source: spec chapter I.3, steps 3 to 5.
  absl::Status Encode(std::string_view text, std::vector<TokenId>* ids, int64_t* work) const;

 private:
  absl::Status AppendUnknown(std::string_view character, std::vector<TokenId>* ids) const;

  const Vocabulary& vocabulary_;
  TokenId unknown_;
  std::vector<uint32_t>
      rank_of_token_;  // dense rank of the score, 0 the highest; equal scores share one
};

}  // namespace weft
