#include "tests/unit/coordinator/tokenizer/tokenizer_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/check.h"
#include "common/gguf/gguf_metadata.h"
#include "coordinator/tokenizer/byte_alphabet.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "coordinator/tokenizer/utf8.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

// What the lines say.
struct HostileFile {
  GgufMetadata metadata;
  std::string text;
  bool has_only_normal_tokens = true;
  bool has_all_bytes = false;
};

class Parser {
 public:
  HostileFile Parse(std::string_view input) {
    while (!input.empty()) {
      const size_t end = std::min(input.find('\n'), input.size());
      const std::string_view line = input.substr(0, end);
      input.remove_prefix(std::min(end + 1, input.size()));
      if (line == "=") break;
      if (!line.empty()) Add(line[0], line.substr(1));
    }
    file_.text = std::string(input);
    file_.metadata.Set("tokenizer.ggml.tokens", GgufArray(std::move(texts_)));
    file_.metadata.Set("tokenizer.ggml.token_type", GgufArray(std::move(types_)));
    file_.metadata.Set("tokenizer.ggml.scores", GgufArray(std::move(scores_)));
    file_.metadata.Set("tokenizer.ggml.merges", GgufArray(std::move(merges_)));
    return std::move(file_);
  }

 private:
  void Add(char letter, std::string_view value) {
    const auto set_flag = [&](const char* key) { file_.metadata.Set(key, value == "1"); };
    const auto set_id = [&](const char* key) { file_.metadata.Set(key, Number(value)); };
    switch (letter) {
      case 'M':
        file_.metadata.Set("tokenizer.ggml.model", std::string(value));
        is_byte_level_ = value == "gpt2";
        return;
      case 'P':
        return file_.metadata.Set("tokenizer.ggml.pre", std::string(value));
      case 'N':
        return file_.metadata.Set("general.name", std::string(value));
      case 'G':
        merges_.emplace_back(value);
        return;
      case 'F':
        return AddAllBytes();
      case 'T':
        return AddToken(value);
      case 'B':
        return set_id("tokenizer.ggml.bos_token_id");
      case 'E':
        return set_id("tokenizer.ggml.eos_token_id");
      case 'U':
        return set_id("tokenizer.ggml.unknown_token_id");
      case 'A':
        return set_flag("tokenizer.ggml.add_bos_token");
      case 'Z':
        return set_flag("tokenizer.ggml.add_eos_token");
      case 'X':
        return set_flag("tokenizer.ggml.add_space_prefix");
      case 'R':
        return types_.resize(Count(value, types_.size()));
      case 'S':
        return scores_.resize(Count(value, scores_.size()));
      default:
        return;
    }
  }

  static int64_t Number(std::string_view value) {
    int64_t number = 0;
    return absl::SimpleAtoi(AbslView(value), &number) ? number : -1;
  }

  static size_t Count(std::string_view value, size_t limit) {
    return static_cast<size_t>(std::clamp<int64_t>(Number(value), 0, static_cast<int64_t>(limit)));
  }

  void AddToken(std::string_view value) {
    if (value.size() < 2) return;
    types_.push_back(value[0] - '0');
    scores_.push_back(static_cast<float>(value[1]));
    texts_.emplace_back(value.substr(2));
    file_.has_only_normal_tokens = file_.has_only_normal_tokens && types_.back() == 1;
  }

  void AddAllBytes() {
    if (file_.has_all_bytes) return;
    file_.has_all_bytes = true;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string bytes(1, static_cast<char>(byte));
      texts_.push_back(is_byte_level_ ? BytesToAlphabet(bytes) : absl::StrFormat("<0x%02X>", byte));
      types_.push_back(is_byte_level_ ? 1 : 6);
      scores_.push_back(0);
    }
  }

  HostileFile file_;
  bool is_byte_level_ = false;
  std::vector<std::string> texts_;
  std::vector<int32_t> types_;
  std::vector<float> scores_;
  std::vector<std::string> merges_;
};

bool IsOneLine(absl::string_view message) {
  return !message.empty() && message.find('\n') == absl::string_view::npos;
}

void CheckStream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Utf8Stream stream;
  std::string bytes;
  std::string streamed;
  for (const TokenId id : ids) {
    const std::string piece = tokenizer.Piece(id, true);
    const std::string part = stream.Append(piece);
    WEFT_CHECK(IsValidUtf8(part));
    bytes += piece;
    streamed += part;
  }
  streamed += stream.Finish();
  WEFT_CHECK(streamed == ReplaceInvalidUtf8(bytes));
}

void CheckText(const Tokenizer& tokenizer, const HostileFile& file, const EncodeOptions& options) {
  const auto ids = tokenizer.Encode(file.text, options);
  if (!ids.ok()) {
    WEFT_CHECK(IsOneLine(ids.status().message()));
    return;
  }
  for (const TokenId id : *ids) WEFT_CHECK(tokenizer.vocabulary().Contains(id));
  CheckStream(tokenizer, *ids);
  const std::string text = tokenizer.Decode(*ids, {.remove_special = true});
  tokenizer.Decode(*ids, {.render_special = true, .clean_up_spaces = true});
  // Where every byte has its token and none hides its text, nothing is lost.
  const bool is_plain = file.has_only_normal_tokens && file.has_all_bytes &&
                        tokenizer.warnings().empty() && !tokenizer.adds_space_prefix();
  if (is_plain && !options.add_special) WEFT_CHECK(text == file.text);
}

}  // namespace

void CheckTokenizer(absl::Span<const uint8_t> input) {
  const HostileFile file =
      Parser().Parse({reinterpret_cast<const char*>(input.data()), input.size()});
  const auto tokenizer = Tokenizer::Create(file.metadata);
  if (!tokenizer.ok()) {
    WEFT_CHECK(IsOneLine(tokenizer.status().message()));
    return;
  }
  for (const TokenId id : {kNoToken, (*tokenizer)->vocabulary_size(), INT32_MIN, INT32_MAX}) {
    WEFT_CHECK((*tokenizer)->Piece(id, true).empty());
    WEFT_CHECK(!(*tokenizer)->IsEndOfGeneration(id));
  }
  CheckText(**tokenizer, file, {});
  CheckText(**tokenizer, file, {.add_special = false, .parse_special = false});
}

}  // namespace weft
