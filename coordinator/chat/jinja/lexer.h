// Cuts a template into tokens, with the white space control of trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::jinja {

enum class TokenKind {
  kText,           // outside of all tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,   // its value, escapes resolved
  kInteger,  // its digits as written
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

// The last token is kEnd. Comments leave no tokens. Errors: INVALID_ARGUMENT with the line.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

// INVALID_ARGUMENT "line 3: words".
absl::Status ErrorAt(int line, std::string_view words);

}  // namespace weft::jinja
