// Small vocabularies for tests, as GGUF metadata.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/gguf/gguf_metadata.h"

namespace weft {

struct SampleToken {
  std::string text;
  float score = 0.0f;
  int32_t type = 1;
};

// Metadata with these tokens, in order, and the model given ("llama" or "gpt2"); for "gpt2" also
// `pre` "gpt-2" and the merges. Keys can be replaced by Set().
GgufMetadata MakeMetadata(std::string_view model, const std::vector<SampleToken>& tokens,
                          const std::vector<std::string>& merges = {});

// SentencePiece style: <unk>, <s>, </s>, 256 byte tokens and then `pieces`, written with '_' for
// U+2581, with falling scores.
GgufMetadata MakeSentencePiece(const std::vector<std::string>& pieces,
                               const std::vector<SampleToken>& more = {});

// Byte level: the 256 bytes, the results of `merges` ("left right" in the byte alphabet), then
// `more`. No bos or eos.
GgufMetadata MakeBytePair(const std::vector<std::string>& merges,
                          const std::vector<SampleToken>& more = {});

}  // namespace weft
