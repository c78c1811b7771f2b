// Every subcommand of `weft`. Each adds its flags to the app and sets context.action when it was
// chosen.
#pragma once

#include "coordinator/cli/command_line.h"

namespace weft {

void AddRunCommand(CLI::App& app, CommandContext& context);
void AddChatCommand(CLI::App& app, CommandContext& context);
void AddServeCommand(CLI::App& app, CommandContext& context);
void AddEvalCommand(CLI::App& app, CommandContext& context);
void AddPerplexityCommand(CLI::App& app, CommandContext& context);
void AddTokenizeCommand(CLI::App& app, CommandContext& context);
void AddInspectCommand(CLI::App& app, CommandContext& context);
void AddBenchCommand(CLI::App& app, CommandContext& context);
void AddExplainCommand(CLI::App& app, CommandContext& context);
void AddSynthCommand(CLI::App& app, CommandContext& context);
void AddWorkersCommand(CLI::App& app, CommandContext& context);
void AddDigestCommand(CLI::App& app, CommandContext& context);
void AddDoctorCommand(CLI::App& app, CommandContext& context);
void AddCertsCommand(CLI::App& app, CommandContext& context);

}  // namespace weft
