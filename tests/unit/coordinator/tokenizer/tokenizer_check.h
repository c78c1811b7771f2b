// One hostile vocabulary and text through the tokenizer; shared by the fuzz target and the mutation
// test.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// Builds metadata from `input`, loads a tokenizer from it, encodes and decodes, and aborts if an
// invariant does not hold. The input is lines, and after a line "=" the text to tokenize. A line is
// a letter and a value:
//   M model   P pre   N general.name   G merge   F all 256 byte tokens
//   T type-digit score-character text: a token      B, E, U: id of bos, eos, unknown
//   A, Z, X digit: add_bos_token, add_eos_token, add_space_prefix
//   R number: keep only so many types   S number: only so many scores
// Other lines mean nothing.
void CheckTokenizer(absl::Span<const uint8_t> input);

}  // namespace weft
