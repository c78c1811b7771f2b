// The flags of `weft inspect`.
#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/inspect.h"
#include "coordinator/models/model_registry.h"

namespace weft {
namespace {

struct InspectFlags {
  std::string path;
  InspectOptions options;
};

absl::Status Inspect(InspectFlags& flags) {
  flags.options.supported_architectures = ArchitectureNames();
  std::ostringstream out;
  const absl::Status status = InspectFile(flags.path, flags.options, out);
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
