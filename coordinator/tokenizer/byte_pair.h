// Byte-level byte-pair encoding: the bytes of a word are merged by a ranked list of pairs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "coordinator/tokenizer/merge_symbols.h"
#include "coordinator/tokenizer/vocabulary.h"

namespace weft {

struct BytePairOptions {
  bool ignore_merges = false;  // a word that is a token as a whole is taken without merging
  TokenId unknown = kNoToken;  // stands for bytes without a token; kNoToken makes those an error
};

class BytePairEncoder {
 public:
  // Reads tokenizer.ggml.merges. `vocabulary` must outlive the encoder. A pair that is listed twice
  // keeps its first rank.
  // Errors: NOT_FOUND without merges; INVALID_ARGUMENT for a merge that is not two texts with a
  // space between.
  static absl::StatusOr<BytePairEncoder> Create(const GgufMetadata& metadata,
                                                const Vocabulary& vocabulary,
                                                const BytePairOptions& options);

  // Appends the tokens of one word (any bytes, less than 2^31 of them). Adds the number of queue
  // operations to `work` unless that is null.
  // Errors: INVALID_ARGUMENT for a byte that the vocabulary cannot express.
  // Source: spec chapter I.4, steps 1 to 3.
  absl::Status Encode(std::string_view word, std::vector<TokenId>* ids, int64_t* work) const;

 private:
  BytePairEncoder(const Vocabulary& vocabulary, const BytePairOptions& options)
      : vocabulary_(&vocabulary), options_(options) {}
  absl::Status AppendBytes(std::string_view bytes, std::vector<TokenId>* ids) const;

  const Vocabulary* vocabulary_;
  BytePairOptions options_;
  // Symbols are numbers for the texts that merging can produce: 0 to 255 are the single bytes.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, MergeRule> rules_;  // by left and right symbol
  std::vector<TokenId> token_of_symbol_;  // kNoToken: not in the vocabulary
};

}  // namespace weft
