// Finds special tokens (control, unknown, user-defined) in text before it is tokenized.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/tokenizer/vocabulary.h"

namespace weft {

// Special tokens with longer texts are not looked for.
inline constexpr size_t kSpecialTextLimit = 512;

// A part of the text: a special token, or raw text between two.
struct TextFragment {
  TokenId token = kNoToken;   // kNoToken: raw text
  std::string_view raw = {};  // not empty if raw
};

class SpecialTokens {
 public:
  // Takes texts and types as they are in `vocabulary` now, which must outlive the object. With
  // `strips_right`, white space (ASCII) that follows a special token is dropped, except after
  // `<unk>`, `<s>` and `<|endoftext|>`.
  SpecialTokens(const Vocabulary& vocabulary, bool strips_right);

  // Splits `text`. User-defined tokens are always found, control and unknown ones only if
  // `parse_special`, and never at the bytes `plain` (ascending).
  //
  // The order is the reference's: longest token first over the whole text (among tokens of one
  // length the lower id), and for each from left to right, wherever it does not overlap what was
  // found before. That is not leftmost-longest. The time is O(m + n log n) for n possible starts in
  // m bytes, times the length of what matches at a start.
  // Source: spec chapter I.2.
  std::vector<TextFragment> Partition(std::string_view text, bool parse_special,
                                      absl::Span<const size_t> plain = {}) const;
  // Where the texts of control and unknown tokens start, ascending.
  std::vector<size_t> FindControlTexts(std::string_view text) const;

  // Special tokens that are not looked for because of kSpecialTextLimit.
  int64_t ignored_count() const { return ignored_count_; }

 private:
  struct Entry {
    std::string_view text;
    TokenId id = kNoToken;
  };
  // Entries sorted by text, and where those with a given first byte begin.
  struct Index {
    std::vector<Entry> entries;
    std::vector<size_t> first;  // [257]
  };

  static Index BuildIndex(std::vector<Entry> entries);
  // The longest entry that `text` starts with; a null id if there is none.
  static Entry FindLongest(const Index& index, std::string_view text);
  bool StripsRight(TokenId id) const;

  const Vocabulary& vocabulary_;
  bool strips_right_;
  int64_t ignored_count_ = 0;
  Index all_;
  Index control_;
  Index user_defined_;
};

}  // namespace weft
