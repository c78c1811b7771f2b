// The flags of `weft tokenize`.
#include <CLI/CLI.hpp>
#include <memory>

#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/tokenize.h"

namespace weft {
namespace {

absl::Status Tokenize(const TokenizeOptions& options, CommandContext& context) {
  ASSIGN_OR_RETURN(const TokenizeOutput output, RunTokenize(options));
  for (const std::string& warning : output.warnings) context.logger.Warning(warning);
  return Print(output.text);
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "text to token ids, or back");
  command->footer("Example: weft tokenize -m model.gguf -p \"Hello\"");
  command->add_option("-m,--model", options->model_path, "GGUF file")->required();
  command->add_option("-p,--prompt", options->text, "the text");
  command->add_option("-f,--file", options->file_path, "read the text from a file, untrimmed");
  command->add_option("--detokenize", options->detokenize, "token ids to turn into text");
  command->add_flag("--no-special", options->no_special,
                    "neither add nor parse special tokens (with --detokenize: leave them out)");
  command->add_flag("--json", options->json, "print {\"ids\": [...]} or {\"text\": \"...\"}");
  command->callback([options, &context] {
    context.action = [options, &context] { return Tokenize(*options, context); };
  });
}

}  // namespace weft
