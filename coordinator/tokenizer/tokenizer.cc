#include "coordinator/tokenizer/tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/byte_alphabet.h"
#include "coordinator/tokenizer/byte_pair.h"
#include "coordinator/tokenizer/decode_cleanup.h"
#include "coordinator/tokenizer/end_of_generation.h"
#include "coordinator/tokenizer/pre_tokenizer.h"
#include "coordinator/tokenizer/sentence_piece.h"
#include "coordinator/tokenizer/special_tokens.h"

namespace weft {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
// How SentencePiece-style vocabularies write a space: U+2581.
constexpr char kEscapedSpace[] = "\xE2\x96\x81";

// The file format has no key for tokens that swallow the white space after them; the model's name
// tells.
absl::StatusOr<bool> StripsRightOfSpecial(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(std::string name, metadata.StringOr("general.name", ""));
  absl::AsciiStrToLower(&name);
  return absl::StrContains(name, "phi-3") || absl::StrContains(name, "phi3");
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(const std::string_view model, metadata.String(kModelKey));
  if (model != "llama" && model != "gpt2") {
    return absl::UnimplementedError(absl::StrCat("key '", AbslView(kModelKey), "' = '",
                                                 absl::CHexEscape(AbslView(model.substr(0, 64))),
                                                 "', known are 'llama' and 'gpt2'"));
  }
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Create(metadata));
  // Not make_unique: the constructor is private.
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary)));
  tokenizer->is_sentence_piece_ = model == "llama";
  RETURN_IF_ERROR(tokenizer->Initialize(metadata));
  return tokenizer;
}

absl::Status Tokenizer::Initialize(const GgufMetadata& metadata) {
  warnings_.assign(vocabulary_.warnings().begin(), vocabulary_.warnings().end());
  RETURN_IF_ERROR(ReadIds(metadata));
  if (is_sentence_piece_) {
    adds_bos_ = true;
    adds_space_prefix_ = true;
    sentence_piece_ = std::make_unique<SentencePieceEncoder>(vocabulary_, unknown_);
    if (!metadata.Has("tokenizer.ggml.scores")) {
      warnings_.push_back(
          "missing key 'tokenizer.ggml.scores': all tokens merge with one priority");
    }
  } else {
    RETURN_IF_ERROR(InitializeBytePair(metadata));
  }
  RETURN_IF_ERROR(ReadFlags(metadata));
  ASSIGN_OR_RETURN(end_of_generation_,
                   FindEndOfGeneration(metadata, eos_, &vocabulary_, &warnings_));
  ASSIGN_OR_RETURN(const bool strips_right, StripsRightOfSpecial(metadata));
  special_tokens_ = std::make_unique<SpecialTokens>(vocabulary_, strips_right);
  if (special_tokens_->ignored_count() > 0) {
    warnings_.push_back(absl::StrCat(special_tokens_->ignored_count(),
                                     " special tokens are longer than ", kSpecialTextLimit,
                                     " bytes and are not looked for in texts"));
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::InitializeBytePair(const GgufMetadata& metadata) {
  if (!metadata.Has(kPreKey)) {
    warnings_.push_back(absl::StrCat("missing key '", AbslView(kPreKey),
                                     "': splitting words as 'default', which may be wrong"));
  }
  ASSIGN_OR_RETURN(const std::string pre, metadata.StringOr(kPreKey, "default"));
  const PreTokenizerRow* row = FindPreTokenizer(pre);
  if (row == nullptr) {
    return absl::UnimplementedError(absl::StrCat("key '", AbslView(kPreKey), "' = '",
                                                 absl::CHexEscape(pre.substr(0, 64)),
                                                 "' is not known"));
  }
  if (row->is_approximate) {
    warnings_.push_back(absl::StrCat("words are split only approximately as '", pre,
                                     "' does: text outside ASCII may give other tokens"));
  }
  adds_bos_ = row->adds_bos;
  cleans_up_spaces_ = row->cleans_spaces;
  ASSIGN_OR_RETURN(pre_tokenizer_, PreTokenizer::Create(*row));
  ASSIGN_OR_RETURN(
      BytePairEncoder encoder,
      BytePairEncoder::Create(metadata, vocabulary_,
                              {.ignore_merges = row->ignore_merges, .unknown = unknown_}));
  byte_pair_ = std::make_unique<BytePairEncoder>(std::move(encoder));
  return absl::OkStatus();
}

absl::Status Tokenizer::ReadIds(const GgufMetadata& metadata) {
  const auto read = [&](const char* key, TokenId default_id) {
    return ReadTokenId(metadata, key, default_id, vocabulary_, &warnings_);
  };
  ASSIGN_OR_RETURN(bos_, read("tokenizer.ggml.bos_token_id", is_sentence_piece_ ? 1 : 11));
  ASSIGN_OR_RETURN(eos_, read("tokenizer.ggml.eos_token_id", is_sentence_piece_ ? 2 : 11));
  ASSIGN_OR_RETURN(unknown_,
                   read("tokenizer.ggml.unknown_token_id", is_sentence_piece_ ? 0 : kNoToken));
  return absl::OkStatus();
}

absl::Status Tokenizer::ReadFlags(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(adds_bos_, metadata.BoolOr("tokenizer.ggml.add_bos_token", adds_bos_));
  ASSIGN_OR_RETURN(adds_eos_, metadata.BoolOr("tokenizer.ggml.add_eos_token", adds_eos_));
  if (is_sentence_piece_) {
    ASSIGN_OR_RETURN(adds_space_prefix_,
                     metadata.BoolOr("tokenizer.ggml.add_space_prefix", adds_space_prefix_));
  }
  if (adds_bos_ && bos_ == kNoToken) {
    warnings_.push_back("the vocabulary asks for a token at the begin of a text, but has none");
    adds_bos_ = false;
  }
  if (adds_eos_ && eos_ == kNoToken) {
    warnings_.push_back("the vocabulary asks for a token at the end of a text, but has none");
    adds_eos_ = false;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  if (text.size() > kTextLimitBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", text.size(), " bytes, want at most ", kTextLimitBytes));
  }
  std::vector<TokenId> ids;
  if (options.add_special && adds_bos_) ids.push_back(bos_);
  bool after_special = true;  // the start counts as one
  for (const TextFragment& fragment :
       special_tokens_->Partition(text, options.parse_special, options.plain)) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
      after_special = true;
      continue;
    }
    RETURN_IF_ERROR(EncodeRaw(fragment.raw, after_special, &ids));
    after_special = false;
  }
  if (options.add_special && adds_eos_) ids.push_back(eos_);
  return ids;
}

std::vector<size_t> Tokenizer::FindControlTexts(std::string_view text) const {
  return special_tokens_->FindControlTexts(text);
}

absl::Status Tokenizer::EncodeRaw(std::string_view raw, bool after_special,
                                  std::vector<TokenId>* ids) const {
  if (is_sentence_piece_) {
    std::string escaped = adds_space_prefix_ && after_special ? kEscapedSpace : "";
    escaped.append(absl::StrReplaceAll(AbslView(raw), {{" ", kEscapedSpace}}));
    if (escaped.size() > kTextLimitBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the text has ", escaped.size(),
                       " bytes with its spaces as U+2581, want at most ", kTextLimitBytes));
    }
    return sentence_piece_->Encode(escaped, ids, nullptr);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string_view> words, pre_tokenizer_->Split(raw));
  for (const std::string_view word : words) {
    RETURN_IF_ERROR(byte_pair_->Encode(word, ids, nullptr));
  }
  return absl::OkStatus();
}

std::string Tokenizer::Piece(TokenId id, bool render_special) const {
  if (!vocabulary_.Contains(id)) return {};
  const std::string_view text = vocabulary_.text(id);
  switch (vocabulary_.type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUnused:
      return render_special ? std::string(text) : std::string();
    case TokenType::kUserDefined:
      return std::string(text);
    case TokenType::kByte: {
      const int byte = vocabulary_.ByteOf(id);
      if (byte >= 0) return std::string(1, static_cast<char>(byte));
      break;
    }
    case TokenType::kNormal:
      break;
  }
  if (is_sentence_piece_) return absl::StrReplaceAll(AbslView(text), {{kEscapedSpace, " "}});
  return AlphabetToBytes(text);
}

std::string Tokenizer::Decode(absl::Span<const TokenId> ids, const DecodeOptions& options) const {
  bool strips_space = adds_space_prefix_;
  if (options.remove_special && adds_bos_ && !ids.empty() && ids.front() == bos_) {
    ids.remove_prefix(1);
    strips_space = false;
  }
  if (options.remove_special && adds_eos_ && !ids.empty() && ids.back() == eos_) {
    ids.remove_suffix(1);
  }
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = Piece(id, options.render_special);
    const bool is_stripped = strips_space && !piece.empty() && piece.front() == ' ';
    text.append(piece, is_stripped ? 1 : 0);
    strips_space = false;
  }
  return options.clean_up_spaces ? CleanUpSpaces(text) : text;
}

}  // namespace weft
