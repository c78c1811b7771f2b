// Text to tokens and back, as the metadata of a GGUF file defines it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/gguf/gguf_metadata.h"
#include "coordinator/tokenizer/vocabulary.h"

namespace weft {

class BytePairEncoder;
class PreTokenizer;
class SentencePieceEncoder;
class SpecialTokens;

// Longer texts are refused.
inline constexpr size_t kTextLimitBytes = size_t{1} << 30;

struct EncodeOptions {
  bool add_special =
      true;  // put the tokens for begin and end of text where the vocabulary asks for them
  bool parse_special =
      true;  // find control tokens in the text (user-defined ones are always found)
  absl::Span<const size_t> plain = {};  // ascending: bytes where no control token starts
};

struct DecodeOptions {
  bool remove_special = false;  // drop a leading bos and a trailing eos that Encode() adds
  bool render_special = false;  // write control and unknown tokens as their text instead of nothing
  // Delete a space before ? ! . , and 's 'm 're 've, and both spaces around a lone apostrophe.
  // Loses spaces that were meant, so it is off and streams never do it.
  bool clean_up_spaces = false;
};

// Immutable; can be used from several threads.
class Tokenizer {
 public:
  // Reads the keys tokenizer.ggml.*: model "llama" (SentencePiece style) or "gpt2" (byte-level
  // byte-pair encoding). Keeps nothing of `metadata`.
  // Errors: name the key. NOT_FOUND if model, tokens or (gpt2) merges are missing; INVALID_ARGUMENT
  // for values that are wrong; UNIMPLEMENTED for another model or an unknown tokenizer.ggml.pre.
  // Source: spec chapter I.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(const GgufMetadata& metadata);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // The tokens of `text`, any bytes. At byte level text that is not UTF-8 is kept too; in
  // SentencePiece style a bad lead byte takes along as many bytes as it announces, so that a space
  // right after it comes back as U+2581.
  // Errors: INVALID_ARGUMENT for a byte or character that the vocabulary cannot express, or a text
  // above kTextLimitBytes; RESOURCE_EXHAUSTED for lack of memory.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options) const;

  // The bytes of `text`, ascending, where Encode() might find a control or unknown token.
  std::vector<size_t> FindControlTexts(std::string_view text) const;

  // The bytes that token `id` adds to a text: may begin or end within a character (see Utf8Stream).
  // Nothing for control and unknown tokens (unless `render_special`), for unused ones and for ids
  // out of range.
  // Source: spec chapter I.7.
  std::string Piece(TokenId id, bool render_special) const;

  // The text of all `ids`: their pieces joined, less the space that Encode() puts before a text
  // (spec chapter I.7: only if the first token has it, not after a bos).
  std::string Decode(absl::Span<const TokenId> ids, const DecodeOptions& options) const;

  int32_t vocabulary_size() const { return vocabulary_.size(); }
  // kNoToken (-1) if the vocabulary has none.
  TokenId bos() const { return bos_; }
  TokenId eos() const { return eos_; }
  TokenId unknown() const { return unknown_; }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  // True if Encode() puts a space before the text and after special tokens.
  bool adds_space_prefix() const { return adds_space_prefix_; }
  // The convention of the model's own tokenizer; nothing here applies it by itself.
  bool cleans_up_spaces() const { return cleans_up_spaces_; }
  // True if `ids` begin with two bos: the text had one, and Encode() put another before it. Models
  // do not expect that; callers warn.
  bool HasDoubleBos(absl::Span<const TokenId> ids) const {
    return bos_ != kNoToken && ids.size() > 1 && ids[0] == bos_ && ids[1] == bos_;
  }
  // True for tokens after which nothing more is to be generated.
  // Source: spec chapter I.6.
  bool IsEndOfGeneration(TokenId id) const { return end_of_generation_.contains(id); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // One line each; what the user should know about a file that can be used nevertheless.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  explicit Tokenizer(Vocabulary vocabulary);
  absl::Status Initialize(const GgufMetadata& metadata);
  absl::Status InitializeBytePair(const GgufMetadata& metadata);
  absl::Status ReadIds(const GgufMetadata& metadata);
  absl::Status ReadFlags(const GgufMetadata& metadata);
  absl::Status EncodeRaw(std::string_view raw, bool after_special, std::vector<TokenId>* ids) const;

  Vocabulary vocabulary_;
  bool is_sentence_piece_ = false;
  TokenId bos_ = kNoToken;
  TokenId eos_ = kNoToken;
  TokenId unknown_ = kNoToken;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  bool adds_space_prefix_ = false;
  bool cleans_up_spaces_ = false;
  absl::flat_hash_set<TokenId> end_of_generation_;
  std::vector<std::string> warnings_;
  std::unique_ptr<SpecialTokens> special_tokens_;
  std::unique_ptr<SentencePieceEncoder> sentence_piece_;  // one of these two
  std::unique_ptr<BytePairEncoder> byte_pair_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;  // with byte_pair_
};

}  // namespace weft
