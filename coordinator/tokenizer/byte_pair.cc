#include "coordinator/tokenizer/byte_pair.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/byte_alphabet.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
// Three symbols for each merge must be numbered in 31 bits.
constexpr size_t kMergesLimit = size_t{1} << 24;

// Numbers the texts that take part in merging.
class SymbolTable {
 public:
  explicit SymbolTable(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      AppendUtf8(ByteToCharacter(static_cast<uint8_t>(byte)), &text);
      Number(text);
    }
  }

  int32_t Number(std::string_view text) {
    const auto found = numbers_.find(AbslView(text));
    if (found != numbers_.end()) return found->second;
    const auto number = static_cast<int32_t>(tokens_.size());
    numbers_.emplace(std::string(text), number);
    tokens_.push_back(vocabulary_.Find(text));
    return number;
  }

  std::vector<TokenId> TakeTokens() { return std::move(tokens_); }

 private:
  const Vocabulary& vocabulary_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
  std::vector<TokenId> tokens_;  // by number
};

std::vector<MergeSymbol> SplitBytes(std::string_view word) {
  std::vector<MergeSymbol> symbols(word.size());
  const auto count = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[i].start = i;
    symbols[i].length = 1;
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
    symbols[i].id = static_cast<uint8_t>(word[i]);
  }
  return symbols;
}

}  // namespace

absl::StatusOr<BytePairEncoder> BytePairEncoder::Create(const GgufMetadata& metadata,
                                                        const Vocabulary& vocabulary,
                                                        const BytePairOptions& options) {
  ASSIGN_OR_RETURN(const absl::Span<const std::string> merges, metadata.Strings(kMergesKey));
  if (merges.size() > kMergesLimit) {
    return absl::InvalidArgumentError(absl::StrCat("key '", AbslView(kMergesKey), "' has ",
                                                   merges.size(), " elements, want at most ",
                                                   kMergesLimit));
  }
  BytePairEncoder encoder(vocabulary, options);
  SymbolTable symbols(vocabulary);
  encoder.rules_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    // A space at the very start belongs to the left text.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "key '", AbslView(kMergesKey), "'[", i, "] = '",
          absl::CHexEscape(merges[i].substr(0, 64)), "', want two texts with a space between"));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const std::pair<int32_t, int32_t> pair(symbols.Number(left), symbols.Number(right));
    const int32_t joined = symbols.Number(absl::StrCat(AbslView(left), AbslView(right)));
    encoder.rules_.try_emplace(pair, MergeRule{static_cast<uint32_t>(i), joined});
  }
  encoder.token_of_symbol_ = symbols.TakeTokens();
  return encoder;
}

absl::Status BytePairEncoder::Encode(std::string_view word, std::vector<TokenId>* ids,
                                     int64_t* work) const {
  // No token of more bytes than this exists: a byte takes at least one byte of text.
  if (options_.ignore_merges && word.size() <= vocabulary_->longest_text()) {
    const TokenId whole = vocabulary_->Find(BytesToAlphabet(word));
    if (whole != kNoToken) {
      ids->push_back(whole);
      return absl::OkStatus();
    }
  }
  std::vector<MergeSymbol> symbols = SplitBytes(word);
  const auto find_rule = [&](const MergeSymbol& left,
                             const MergeSymbol& right) -> std::optional<MergeRule> {
    const auto found = rules_.find(std::pair<int32_t, int32_t>(left.id, right.id));
    if (found == rules_.end()) return std::nullopt;
    return found->second;
  };
  int64_t queue_operations = 0;
  MergeSymbols(&symbols, find_rule, &queue_operations);
  if (work != nullptr) *work += queue_operations;
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.length == 0) continue;
    const TokenId token = token_of_symbol_[symbol.id];
    if (token != kNoToken) {
      ids->push_back(token);
    } else {
      RETURN_IF_ERROR(AppendBytes(word.substr(symbol.start, symbol.length), ids));
    }
  }
  return absl::OkStatus();
}

absl::Status BytePairEncoder::AppendBytes(std::string_view bytes, std::vector<TokenId>* ids) const {
  for (const char byte : bytes) {
    const TokenId token = token_of_symbol_[static_cast<uint8_t>(byte)];
    if (token == kNoToken && options_.unknown == kNoToken) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the vocabulary has no token for the byte 0x%02X and none for unknown ones",
          static_cast<uint8_t>(byte)));
    }
    ids->push_back(token != kNoToken ? token : options_.unknown);
  }
  return absl::OkStatus();
}

}  // namespace weft
