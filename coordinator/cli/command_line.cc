#include "coordinator/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/flags/flag_checks.h"
#include "coordinator/cli/arguments.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit_code.h"

namespace weft {

void AddModelFlags(CLI::App& command, ModelFlags& flags) {
  command.add_option("-m,--model", flags.model, "GGUF file (the first part of a split one)")
      ->required();
  command
      .add_option("-c,--ctx-size", flags.context,
                  "context size in tokens; 0: as the model was trained")
      ->check([](const std::string& value) {
        return value.starts_with('-') ? "'" + value + "': want at least 0" : std::string();
      });
  command.add_option("-u,--ub,--ubatch-size", flags.ubatch, "most tokens computed at once (-ub)")
      ->capture_default_str();
  command
      .add_option("-t,--threads", flags.threads,
                  "threads; 0: one per processor, fewer where a control group allows fewer")
      ->capture_default_str();
  command
      .add_option("--ctk,--cache-type-k", flags.key_type,
                  "type of cached keys: f32, f16, q8_0 (-ctk)")
      ->capture_default_str();
  command
      .add_option("--ctv,--cache-type-v", flags.value_type,
                  "type of cached values: f32, f16, q8_0 (-ctv)")
      ->capture_default_str();
  command.add_option("--isa", flags.instruction_set,
                     "force an instruction set: scalar, avx2, avx512, neon");
  command.add_flag("--forbid-replans", flags.forbid_replans,
                   "fail where memory planned at the start turns out too small, with the reason");
  AddPlacementFlags(command, flags.placement);
  AddFleetFlags(command, flags.fleet);
}

absl::Status Print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError("cannot write to stdout");
}

int RunCommandLine(int argc, const char* const* argv, const Clock& clock, Logger& logger) {
  CommandContext context{clock, logger, nullptr};
  CLI::App app("weft runs large language models from GGUF files.", "weft");
  app.require_subcommand(1);
  app.footer("Example: weft run -m models/shakespeare-q8_0.gguf -p \"ROMEO:\" -n 64");
  app.set_version_flag("--version", "weft " WEFT_VERSION);
  AddRunCommand(app, context);
  AddChatCommand(app, context);
  AddServeCommand(app, context);
  AddEvalCommand(app, context);
  AddPerplexityCommand(app, context);
  AddTokenizeCommand(app, context);
  AddInspectCommand(app, context);
  AddBenchCommand(app, context);
  AddExplainCommand(app, context);
  AddSynthCommand(app, context);
  AddWorkersCommand(app, context);
  AddDoctorCommand(app, context);
  AddDigestCommand(app, context);
  AddCertsCommand(app, context);
  CheckFlagValues(app, {"prompt", "system"});
  std::vector<std::string> arguments = NormalizeArguments(argc, argv);
  if (const std::string fault = FindValuelessFlag({arguments.rbegin(), arguments.rend()});
      !fault.empty()) {
    logger.Error(fault);
    return kExitUsage;
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return PrintHelp(app, error);
    logger.Error(error.what());
    return kExitUsage;
  }
  const absl::Status status = context.action ? context.action() : absl::OkStatus();
  if (!status.ok()) logger.Error(std::string(status.message()));
  return ExitCode(status);
}

}  // namespace weft
