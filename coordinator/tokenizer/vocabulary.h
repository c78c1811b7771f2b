// The tokens of a model: texts, kinds and scores, with look-up by text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_metadata.h"

namespace weft {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// More tokens than this are refused; the largest published vocabularies have 2^18.
inline constexpr int64_t kVocabularyLimit = int64_t{1} << 24;

// Values of tokenizer.ggml.token_type (spec chapter I.1). 0 ("undefined") is read as normal.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

class Vocabulary {
 public:
  // Reads tokenizer.ggml.{tokens,token_type,scores}. Without token_type all tokens are normal,
  // without scores all scores 0. Tokens with an empty text exist but are never found. Of several
  // tokens with one text the last is found; that is a warning.
  // Errors: NOT_FOUND without tokens; INVALID_ARGUMENT for an empty list, array lengths that
  // differ, an unknown type, a score that is not a number, more than kVocabularyLimit tokens.
  static absl::StatusOr<Vocabulary> Create(const GgufMetadata& metadata);

  Vocabulary(Vocabulary&&) = default;  // copies would look up in the original's texts
  Vocabulary& operator=(Vocabulary&&) = default;

  int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  bool Contains(int64_t id) const { return id >= 0 && id < size(); }
  // The next three want an id that the vocabulary contains.
  std::string_view text(TokenId id) const { return texts_[id]; }
  TokenType type(TokenId id) const { return types_[id]; }
  float score(TokenId id) const { return scores_[id]; }
  void set_type(TokenId id, TokenType type) { types_[id] = type; }

  // The token with exactly this text; kNoToken if there is none.
  TokenId Find(std::string_view text) const;
  // The token that stands for `byte`: the one called "<0xXX>", else the one whose text is that
  // byte; kNoToken if none.
  TokenId FindByte(uint8_t byte) const { return byte_tokens_[byte]; }
  // The byte that a token of type kByte stands for; -1 if its text is not of the form "<0xXX>".
  int ByteOf(TokenId id) const;

  // Bytes of the longest text.
  size_t longest_text() const { return longest_text_; }
  absl::Span<const std::string> warnings() const { return warnings_; }

 private:
  Vocabulary() = default;
  absl::Status ReadTypes(const GgufMetadata& metadata);
  absl::Status ReadScores(const GgufMetadata& metadata);
  void BuildIndex();

  std::vector<std::string> texts_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  absl::flat_hash_map<absl::string_view, TokenId> index_;  // keys point into texts_
  std::vector<TokenId> byte_tokens_;                       // [256]
  size_t longest_text_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace weft
