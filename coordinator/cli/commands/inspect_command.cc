// The flags of `weft inspect`.
#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/inspect.h"
#include "coordinator/models/model.h"
#include "coordinator/models/model_registry.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {
namespace {

struct InspectFlags {
  std::string path;
  InspectOptions options;
};

// What `weft run` would refuse the file for, before it loads anything.
std::vector<std::string> FindObstacles(const GgufFile& file) {
  std::vector<std::string> obstacles;
  const absl::StatusOr<std::unique_ptr<Model>> model = Model::Create(file);
  if (!model.ok()) obstacles.emplace_back(model.status().message());
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Create(file.metadata());
  if (!tokenizer.ok()) {
    obstacles.emplace_back(tokenizer.status().message());
  } else if (model.ok() && (*tokenizer)->vocabulary_size() > (*model)->hyperparameters().n_vocab) {
    obstacles.push_back(absl::StrCat("the tokenizer has ", (*tokenizer)->vocabulary_size(),
                                     " tokens, the model ", (*model)->hyperparameters().n_vocab));
  }
  return obstacles;
}

absl::Status Inspect(InspectFlags& flags) {
  flags.options.supported_architectures = ArchitectureNames();
  flags.options.find_obstacles = FindObstacles;
  std::ostringstream out;
  absl::Status status = InspectFile(flags.path, flags.options, out);
  RETURN_IF_ERROR(Print(out.str()));
  return status;
}

}  // namespace

void AddInspectCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand("inspect", "what is in a GGUF file");
  command->footer("Example: weft inspect models/shakespeare-q8_0.gguf");
  command->add_option("file,-m,--model", flags->path, "GGUF file")->required();
  command->add_flag("--check", flags->options.check, "read all tensor data and check it");
  command->add_flag("--json", flags->options.json, "print one JSON object");
  command->callback([flags, &context] { context.action = [flags] { return Inspect(*flags); }; });
}

}  // namespace weft
