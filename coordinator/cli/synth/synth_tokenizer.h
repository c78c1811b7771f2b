// A byte-level BPE vocabulary of any size made by rule: it encodes and decodes every text, and
// splits English words into pieces of a few letters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/gguf/gguf_metadata.h"

namespace weft {

// The 256 bytes and three control tokens.
inline constexpr int64_t kSmallestSynthVocabulary = 259;
// All that the merge rules yield: space and letter, pairs, space and three letters, three letters,
// four letters.
inline constexpr int64_t kLargestSynthVocabulary =
    kSmallestSynthVocabulary + 26 + 26 * 26 + 2 * 26 * 26 * 26 + 26 * 26 * 26 * 26;

struct SynthVocabulary {
  std::vector<std::string>
      tokens;  // bytes, merged texts, control tokens; in the GPT-2 byte alphabet
  std::vector<std::string> merges;  // "left right", best first
  int64_t end_of_text_id = 0;       // "<|endoftext|>", also the beginning and the padding
  int64_t message_start_id = 0;     // "<|im_start|>"
  int64_t message_end_id = 0;       // "<|im_end|>", ends a generation
};

// Errors: INVALID_ARGUMENT if `size` is not within the bounds above.
absl::StatusOr<SynthVocabulary> MakeSynthVocabulary(int64_t size);

// Adds the tokenizer.* keys of spec I.1, with a ChatML template.
absl::Status AddTokenizerMetadata(const SynthVocabulary& vocabulary, GgufMetadata* metadata);

}  // namespace weft
