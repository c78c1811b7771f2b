#include "coordinator/tokenizer/vocabulary.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";

absl::Status WrongLength(std::string_view key, size_t length, size_t wanted) {
  return absl::InvalidArgumentError(absl::StrCat("key '", AbslView(key), "' has ", length,
                                                 " elements, want ", wanted, " as in '",
                                                 AbslView(kTokensKey), "'"));
}

int HexDigit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Create(const GgufMetadata& metadata) {
  Vocabulary vocabulary;
  ASSIGN_OR_RETURN(const absl::Span<const std::string> texts, metadata.Strings(kTokensKey));
  if (texts.empty() || static_cast<int64_t>(texts.size()) > kVocabularyLimit) {
    return absl::InvalidArgumentError(absl::StrCat("key '", AbslView(kTokensKey), "' has ",
                                                   texts.size(), " elements, want 1 to ",
                                                   kVocabularyLimit));
  }
  vocabulary.texts_.assign(texts.begin(), texts.end());
  RETURN_IF_ERROR(vocabulary.ReadTypes(metadata));
  RETURN_IF_ERROR(vocabulary.ReadScores(metadata));
  vocabulary.BuildIndex();
  return vocabulary;
}

absl::Status Vocabulary::ReadTypes(const GgufMetadata& metadata) {
  types_.assign(texts_.size(), TokenType::kNormal);
  if (!metadata.Has(kTypesKey)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> types, metadata.Integers(kTypesKey));
  if (types.size() != texts_.size()) return WrongLength(kTypesKey, types.size(), texts_.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == 0) continue;
    if (types[i] < 0 || types[i] > static_cast<int64_t>(TokenType::kByte)) {
      return absl::InvalidArgumentError(
          absl::StrCat("key '", AbslView(kTypesKey), "'[", i, "] = ", types[i], ", want 0 to 6"));
    }
    types_[i] = static_cast<TokenType>(types[i]);
  }
  return absl::OkStatus();
}

absl::Status Vocabulary::ReadScores(const GgufMetadata& metadata) {
  scores_.assign(texts_.size(), 0.0f);
  if (!metadata.Has(kScoresKey)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<float> scores, metadata.Floats(kScoresKey));
  if (scores.size() != texts_.size()) return WrongLength(kScoresKey, scores.size(), texts_.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("key '", AbslView(kScoresKey), "'[", i, "] is not a number"));
    }
  }
  scores_ = std::move(scores);
  return absl::OkStatus();
}

void Vocabulary::BuildIndex() {
  int64_t empty_count = 0;
  int64_t duplicate_count = 0;
  index_.reserve(texts_.size());
  for (TokenId id = 0; id < size(); ++id) {
    const std::string& text = texts_[id];
    if (text.empty()) {
      ++empty_count;
      continue;
    }
    longest_text_ = std::max(longest_text_, text.size());
    const auto [position, inserted] = index_.insert_or_assign(text, id);
    if (!inserted) ++duplicate_count;
  }
  if (empty_count > 0) {
    warnings_.push_back(absl::StrCat(empty_count, " tokens of the vocabulary have no text"));
  }
  if (duplicate_count > 0) {
    warnings_.push_back(
        absl::StrCat(duplicate_count, " tokens have the text of another; the last one is used"));
  }
  byte_tokens_.assign(256, kNoToken);
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = Find(absl::StrFormat("<0x%02X>", byte));
    if (byte_tokens_[byte] == kNoToken)
      byte_tokens_[byte] = Find(std::string(1, static_cast<char>(byte)));
  }
}

TokenId Vocabulary::Find(std::string_view text) const {
  const auto found = index_.find(AbslView(text));
  return found == index_.end() ? kNoToken : found->second;
}

int Vocabulary::ByteOf(TokenId id) const {
  const std::string& text = texts_[id];
  if (text.size() != 6 || text.compare(0, 3, "<0x") != 0 || text[5] != '>') return -1;
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace weft
