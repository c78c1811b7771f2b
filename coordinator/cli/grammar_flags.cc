#include "coordinator/cli/grammar_flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"
#include "coordinator/grammar/gbnf_parser.h"
#include "coordinator/grammar/json_schema.h"
#include "coordinator/grammar/tokenizer_trie.h"

namespace weft {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  return ReadSmallFile(path, static_cast<size_t>(GrammarLimits{}.source_bytes));
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

absl::StatusOr<Grammar> GrammarOf(const GrammarFlags& flags, Logger& logger) {
  if (!flags.grammar.empty() && !flags.json_schema.empty()) {
    return absl::InvalidArgumentError("--grammar and --json-schema exclude each other");
  }
  if (!flags.grammar.empty()) {
    absl::StatusOr<std::string> text = ReadText(flags.grammar);
    if (!text.ok()) return Named("--grammar", text.status());
    absl::StatusOr<Grammar> grammar = ParseGbnf(*text);
    if (!grammar.ok()) return Named("--grammar", grammar.status());
    return grammar;
  }
  // A schema is an object or a truth value; no file is called so.
  const bool is_text = flags.json_schema[0] == '{' || flags.json_schema == "true";
  absl::StatusOr<std::string> text = flags.json_schema;
  if (!is_text) text = ReadText(flags.json_schema);
  if (!text.ok()) return Named("--json-schema", text.status());
  absl::StatusOr<SchemaGrammar> made = SchemaToGrammar(std::string_view(*text));
  if (!made.ok()) return Named("--json-schema", made.status());
  for (const std::string& what : made->ignored) {
    logger.Warning(absl::StrCat("--json-schema: ignored ", what));
  }
  return std::move(made->grammar);
}

}  // namespace

void AddGrammarFlags(CLI::App& command, GrammarFlags& flags) {
  command.add_option("--grammar", flags.grammar, "file with a GBNF grammar that the text follows");
  command.add_option("--json-schema", flags.json_schema,
                     "JSON schema, or a file with one, that the text follows");
}

absl::StatusOr<std::unique_ptr<GrammarMatcher>> MakeMatcher(const GrammarFlags& flags,
                                                            const Tokenizer& tokenizer,
                                                            Logger& logger) {
  ASSIGN_OR_RETURN(Grammar grammar, GrammarOf(flags, logger));
  return GrammarMatcher::Create(std::make_shared<const Grammar>(std::move(grammar)),
                                MakeTokenTrie(tokenizer));
}

}  // namespace weft
