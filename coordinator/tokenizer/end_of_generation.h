// Which tokens end the generation, and the changes to token types that go with them.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_metadata.h"
#include "coordinator/tokenizer/vocabulary.h"

namespace weft {

// The id under `key`; `default_id` if the key is absent. An id that the vocabulary does not contain
// is ignored, with a warning if the file has it: the result is kNoToken.
// Errors: INVALID_ARGUMENT if the value is not an integer.
absl::StatusOr<TokenId> ReadTokenId(const GgufMetadata& metadata, const std::string& key,
                                    TokenId default_id, const Vocabulary& vocabulary,
                                    std::vector<std::string>* warnings);

// The set of tokens that end the generation: `eos`, those named by keys of `metadata`, and those
// with a known text. Tokens of known text become control tokens in `vocabulary`, with a warning;
// tokens that the set must not have although they are in the list become user-defined or normal.
// Errors: INVALID_ARGUMENT if a key is not an integer.
// Source: spec chapter I.6.
absl::StatusOr<absl::flat_hash_set<TokenId>> FindEndOfGeneration(
    const GgufMetadata& metadata, TokenId eos, Vocabulary* vocabulary,
    std::vector<std::string>* warnings);

}  // namespace weft
