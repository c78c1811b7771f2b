// Which marks of replies are control tokens of a vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

class MarkerTokens {
 public:
  struct Token {
    int32_t id = 0;
    bool ends = false;  // nothing may follow it
  };

  using Map = absl::flat_hash_map<std::string, Token>;

  // All control tokens of a vocabulary.
  explicit MarkerTokens(const Tokenizer& tokenizer);
  explicit MarkerTokens(Map tokens) : tokens_(std::move(tokens)) {}

  // The control token of this text; nothing if it is text like any other.
  std::optional<Token> Find(std::string_view text) const;

 private:
  Map tokens_;
};

}  // namespace weft
