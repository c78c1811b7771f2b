// The flags of `weft digest`.
#include <CLI/CLI.hpp>
#include <memory>

#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/digest.h"
#include "coordinator/cli/progress_bar.h"

namespace weft {
namespace {

absl::Status Digest(DigestOptions& options, CommandContext& context) {
  ProgressBar bar(context.clock, (options.check ? "checking " : "digesting ") + options.model_path,
                  "B");
  options.progress = [&](int64_t done, int64_t total) { bar.Update(done, total); };
  ASSIGN_OR_RETURN(const std::string report, RunDigest(options));
  bar.Finish();
  return Print(report);
}

}  // namespace

void AddDigestCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<DigestOptions>();
  CLI::App* command =
      app.add_subcommand("digest", "write FILE.weft-digest, so that workers can check weights");
  command->footer("Example: weft digest models/shakespeare-q8_0.gguf");
  command->add_option("file,-m,--model", options->model_path, "GGUF file")->required();
  command->add_flag("--check", options->check,
                    "compare the file with its digests instead of writing them");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &context] {
    context.action = [options, &context] { return Digest(*options, context); };
  });
}

}  // namespace weft
