// The tokens as the parser walks through them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/lexer.h"

namespace weft::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& next() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  int line() const { return current().line; }
  // Stays at the end.
  void Advance() {
    if (position_ + 1 < tokens_.size()) ++position_;
  }

  bool At(TokenKind kind) const { return current().kind == kind; }
  bool AtOperator(std::string_view text) const {
    return At(TokenKind::kOperator) && current().text == text;
  }
  bool AtName(std::string_view text) const {
    return At(TokenKind::kName) && current().text == text;
  }
  bool AcceptOperator(std::string_view text) { return Accept(AtOperator(text)); }
  bool AcceptName(std::string_view text) { return Accept(AtName(text)); }

  absl::Status ExpectOperator(std::string_view text);
  absl::Status ExpectName(std::string_view text);
  absl::Status Expect(TokenKind kind);
  // Any name, which it returns.
  absl::StatusOr<std::string> ExpectAnyName();

  // An error at the current token: "line 3: unexpected 'x', want ...".
  absl::Status Unexpected(std::string_view wanted) const;

 private:
  bool Accept(bool matches) {
    if (matches) Advance();
    return matches;
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace weft::jinja
