#include "coordinator/cli/commands/tokenize.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/tokenizer/utf8_stream.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

absl::StatusOr<std::vector<TokenId>> ParseIds(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  for (const absl::string_view word :
       absl::StrSplit(AbslView(text), absl::ByAnyChar(", \t\r\n"), absl::SkipEmpty())) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || !tokenizer.vocabulary().Contains(id)) {
      return absl::InvalidArgumentError(absl::StrCat("'", word.substr(0, 64),
                                                     "' is not a token id, want 0 to ",
                                                     tokenizer.vocabulary_size() - 1));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

absl::Status CheckOptions(const TokenizeOptions& options) {
  const int source_count = (options.text.has_value() ? 1 : 0) +
                           (options.file_path.has_value() ? 1 : 0) +
                           (options.detokenize.has_value() ? 1 : 0);
  if (source_count == 1) return absl::OkStatus();
  return absl::InvalidArgumentError("want exactly one of -p TEXT, -f FILE and --detokenize IDS");
}

absl::StatusOr<TokenizeOutput> Convert(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  if (options.detokenize.has_value()) {
    return Detokenize(tokenizer, *options.detokenize, options);
  }
  if (options.text.has_value()) return Tokenize(tokenizer, *options.text, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(*options.file_path));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  return Tokenize(tokenizer, text, options);
}

}  // namespace

absl::StatusOr<TokenizeOutput> Tokenize(const Tokenizer& tokenizer, std::string_view text,
                                        const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                   tokenizer.Encode(text, {.add_special = !options.no_special,
                                           .parse_special = !options.no_special}));
  TokenizeOutput output;
  output.text = options.json ? absl::StrCat("{\"ids\":[", absl::StrJoin(ids, ","), "]}\n")
                             : absl::StrCat(absl::StrJoin(ids, " "), "\n");
  if (tokenizer.HasDoubleBos(ids)) {
    output.warnings.push_back(
        "the text begins with the token that is put before it: now there are two");
  }
  return output;
}

absl::StatusOr<TokenizeOutput> Detokenize(const Tokenizer& tokenizer, std::string_view ids,
                                          const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<TokenId> parsed, ParseIds(tokenizer, ids));
  const std::string text = tokenizer.Decode(
      parsed, {.remove_special = options.no_special, .render_special = !options.no_special});
  TokenizeOutput output;
  output.text = options.json ? nlohmann::json{{"text", ReplaceInvalidUtf8(text)}}.dump() : text;
  output.text.push_back('\n');
  return output;
}

absl::StatusOr<TokenizeOutput> RunTokenize(const TokenizeOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(options.model_path));
  auto tokenizer = Tokenizer::Create(file->metadata());
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(),
                        absl::StrCat("'", options.model_path, "': ", tokenizer.status().message()));
  }
  ASSIGN_OR_RETURN(TokenizeOutput output, Convert(**tokenizer, options));
  output.warnings.insert(output.warnings.begin(), (*tokenizer)->warnings().begin(),
                         (*tokenizer)->warnings().end());
  return output;
}

}  // namespace weft
