// `weft tokenize`: text to token ids and back, with the tokenizer of a model file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

struct TokenizeOptions {
  std::string model_path = {};
  // Exactly one of the next three.
  std::optional<std::string> text = {};
  std::optional<std::string> file_path = {};   // its bytes are taken as they are, nothing trimmed
  std::optional<std::string> detokenize = {};  // ids, separated by commas or white space
  // Tokenizing: add no special tokens and find no control tokens in the text. Detokenizing: leave
  // special tokens out instead of writing their text.
  bool no_special = false;
  bool json = false;
};

struct TokenizeOutput {
  std::string text;                   // for stdout, with the newline at the end
  std::vector<std::string> warnings;  // for stderr, one line each
};

// Does what the command does, short of writing the output. Tokenizing gives the ids on one line,
// separated by spaces, or {"ids":[...]}. Detokenizing gives the bytes of the text and a newline, or
// {"text":"..."} with U+FFFD for what is not UTF-8; the space that tokenizing puts before a text is
// not part of it.
// Errors: INVALID_ARGUMENT for options that do not fit, ids that are not numbers or not in the
// vocabulary, and files that are not models; NOT_FOUND for missing files.
absl::StatusOr<TokenizeOutput> RunTokenize(const TokenizeOptions& options);

// The same with a tokenizer that is there already; its own warnings are left out.
absl::StatusOr<TokenizeOutput> Tokenize(const Tokenizer& tokenizer, std::string_view text,
                                        const TokenizeOptions& options);
absl::StatusOr<TokenizeOutput> Detokenize(const Tokenizer& tokenizer, std::string_view ids,
                                          const TokenizeOptions& options);

}  // namespace weft
