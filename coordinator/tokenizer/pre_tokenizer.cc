#include "coordinator/tokenizer/pre_tokenizer.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/regex/regular_expression.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

// `text` with U+FFFD for each byte that is not UTF-8, and where those are.
struct RepairedText {
  std::string text;
  std::vector<size_t> replacements;  // offsets in `text`, ascending
};

RepairedText Repair(std::string_view text) {
  RepairedText repaired;
  repaired.text.reserve(text.size() + 64);
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = DecodeUtf8(text, position);
    if (character.kind == Utf8Kind::kValid) {
      repaired.text.append(text.substr(position, character.bytes));
    } else {
      for (int i = 0; i < character.bytes; ++i) {
        repaired.replacements.push_back(repaired.text.size());
        repaired.text.append(kReplacementText);
      }
    }
    position += character.bytes;
  }
  return repaired;
}

// The words of `original` that correspond to `words` of the repaired text.
std::vector<std::string_view> MapBack(const RepairedText& repaired,
                                      const std::vector<std::string_view>& words,
                                      std::string_view original) {
  std::vector<std::string_view> mapped;
  mapped.reserve(words.size());
  size_t next_replacement = 0;
  size_t start = 0;
  for (const std::string_view word : words) {
    const size_t end = static_cast<size_t>(word.data() + word.size() - repaired.text.data());
    size_t length = word.size();
    while (next_replacement < repaired.replacements.size() &&
           repaired.replacements[next_replacement] < end) {
      length -= kReplacementText.size() - 1;
      ++next_replacement;
    }
    mapped.push_back(original.substr(start, length));
    start += length;
  }
  return mapped;
}

absl::StatusOr<std::vector<std::unique_ptr<RegularExpression>>> CompileAll(
    const PreTokenizerRow& row, RegularExpressionMode mode) {
  std::vector<std::unique_ptr<RegularExpression>> expressions;
  for (const std::string_view expression : row.expressions) {
    ASSIGN_OR_RETURN(auto compiled, RegularExpression::Create(expression, mode));
    expressions.push_back(std::move(compiled));
  }
  return expressions;
}

absl::StatusOr<std::vector<std::string_view>> SplitByAll(
    const std::vector<std::unique_ptr<RegularExpression>>& expressions, std::string_view text,
    int64_t* steps) {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  for (const auto& expression : expressions) {
    ASSIGN_OR_RETURN(words, expression->SplitAll(words, steps));
  }
  return words;
}

}  // namespace

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(const PreTokenizerRow& row) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<PreTokenizer> pre_tokenizer(new PreTokenizer());
  ASSIGN_OR_RETURN(pre_tokenizer->expressions_, CompileAll(row, RegularExpressionMode::kFast));
  return pre_tokenizer;
}

absl::StatusOr<std::vector<std::string_view>> PreTokenizer::Split(std::string_view text) const {
  if (IsValidUtf8(text)) return SplitByAll(expressions_, text, nullptr);
  const RepairedText repaired = Repair(text);
  ASSIGN_OR_RETURN(const std::vector<std::string_view> words,
                   SplitByAll(expressions_, repaired.text, nullptr));
  return MapBack(repaired, words, text);
}

absl::StatusOr<int64_t> PreTokenizer::CountStepsForTest(const PreTokenizerRow& row,
                                                        std::string_view text) {
  ASSIGN_OR_RETURN(const auto expressions, CompileAll(row, RegularExpressionMode::kCountSteps));
  const std::string repaired = Repair(text).text;
  int64_t steps = 0;
  RETURN_IF_ERROR(SplitByAll(expressions, repaired, &steps).status());
  return steps;
}

}  // namespace weft
