#include "coordinator/tokenizer/sentence_piece.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/merge_symbols.h"

namespace weft {
namespace {

// By the lead byte alone; continuation bytes and impossible lead bytes count as one.
int32_t AnnouncedLength(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::vector<uint32_t> RankByScore(const Vocabulary& vocabulary) {
  std::vector<float> scores;
  scores.reserve(vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) scores.push_back(vocabulary.score(id));
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const auto place =
        std::lower_bound(scores.begin(), scores.end(), vocabulary.score(id), std::greater<>());
    ranks.push_back(static_cast<uint32_t>(place - scores.begin()));
  }
  return ranks;
}

std::vector<MergeSymbol> SplitCharacters(std::string_view text) {
  std::vector<MergeSymbol> symbols;
  symbols.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const auto rest = static_cast<int32_t>(text.size() - position);
    const int32_t length = std::min(AnnouncedLength(text[position]), rest);
    const auto index = static_cast<int32_t>(symbols.size());
    symbols.push_back({.start = static_cast<int32_t>(position),
                       .length = length,
                       .previous = index - 1,
                       .next = length < rest ? index + 1 : -1});
    position += length;
  }
  return symbols;
}

}  // namespace

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary, TokenId unknown)
    : vocabulary_(vocabulary), unknown_(unknown), rank_of_token_(RankByScore(vocabulary)) {}

absl::Status SentencePieceEncoder::Encode(std::string_view text, std::vector<TokenId>* ids,
                                          int64_t* work) const {
  std::vector<MergeSymbol> symbols = SplitCharacters(text);
  for (MergeSymbol& symbol : symbols) {
    symbol.id = vocabulary_.Find(text.substr(symbol.start, symbol.length));
  }
  const auto find_rule = [&](const MergeSymbol& left,
                             const MergeSymbol& right) -> std::optional<MergeRule> {
    const size_t bytes = static_cast<size_t>(left.length) + static_cast<size_t>(right.length);
    if (bytes > vocabulary_.longest_text()) return std::nullopt;
    const TokenId joined = vocabulary_.Find(text.substr(left.start, bytes));
    if (joined == kNoToken) return std::nullopt;
    return MergeRule{.rank = rank_of_token_[joined], .joined_id = joined};
  };
  int64_t queue_operations = 0;
  MergeSymbols(&symbols, find_rule, &queue_operations);
  if (work != nullptr) *work += queue_operations;
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.length == 0) continue;
    if (symbol.id != kNoToken) {
      ids->push_back(symbol.id);
      continue;
    }
    // Only single characters get here: what was merged is a token.
    RETURN_IF_ERROR(AppendUnknown(text.substr(symbol.start, symbol.length), ids));
  }
  return absl::OkStatus();
}

absl::Status SentencePieceEncoder::AppendUnknown(std::string_view character,
                                                 std::vector<TokenId>* ids) const {
  const bool has_bytes = std::all_of(character.begin(), character.end(), [this](char byte) {
    return vocabulary_.FindByte(static_cast<uint8_t>(byte)) != kNoToken;
  });
  if (has_bytes) {
    for (const char byte : character)
      ids->push_back(vocabulary_.FindByte(static_cast<uint8_t>(byte)));
    return absl::OkStatus();
  }
  if (unknown_ == kNoToken) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has no token for the character '",
                     absl::CHexEscape(AbslView(character)), "' and none for unknown ones"));
  }
  ids->push_back(unknown_);
  return absl::OkStatus();
}

}  // namespace weft
