// Keeps what clients write from being taken for the marks that a template writes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/json_line.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

struct GuardedText {
  std::string text;
  std::vector<size_t> plain;  // ascending: bytes of it where no control token starts
};

// Puts a character that occurs nowhere else before each place where a client's text spells a
// control token. Templates carry it along; TakeOut finds it again in what they made, wherever the
// text came to stand. For one prompt.
class TextGuard {
 public:
  // `tokenizer` outlives it. `texts`: all that will be guarded. Errors: INVALID_ARGUMENT if they
  // use every character that could stand guard.
  static absl::StatusOr<TextGuard> Create(const Tokenizer& tokenizer,
                                          const std::vector<const Json*>& texts);

  // A copy with all texts and keys in it guarded. <think> and </think> of a message of the
  // assistant stay what they are: they are how it was said.
  Json Guard(const Json& value) const;
  GuardedText TakeOut(const std::string& rendered) const;

 private:
  TextGuard(const Tokenizer& tokenizer, std::string guard)
      : tokenizer_(&tokenizer), guard_(std::move(guard)) {}
  std::string GuardText(const std::string& text, bool keeps_thoughts) const;
  Json GuardValue(const Json& value, bool keeps_thoughts) const;

  const Tokenizer* tokenizer_;
  std::string guard_;
};

}  // namespace weft
