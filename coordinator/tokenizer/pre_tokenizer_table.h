// What each value of tokenizer.ggml.pre stands for: regular expressions and defaults.
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace weft {

struct PreTokenizerRow {
  absl::Span<const std::string_view> ids;  // the values of tokenizer.ggml.pre
  // Applied one after the other, each to the pieces that the one before left. In the notation of
  // spec chapter I.5; \s is Unicode White_Space.
  absl::Span<const std::string_view> expressions;
  bool ignore_merges = false;  // whole words that are tokens are not merged
  bool adds_bos = false;       // default of tokenizer.ggml.add_bos_token
  // The model's convention deletes some spaces from decoded text; see
  // DecodeOptions::clean_up_spaces.
  bool cleans_spaces = false;
  // The expressions are not exactly those of the published tokenizer.
  bool is_approximate = false;
};

// All rows; every id is in one row only.
absl::Span<const PreTokenizerRow> PreTokenizerTable();

// The row with `id`; null if there is none.
const PreTokenizerRow* FindPreTokenizer(std::string_view id);

}  // namespace weft
