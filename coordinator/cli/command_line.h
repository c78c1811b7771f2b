// The command line of `weft`: one subcommand per file in commands/.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/cli/local_session.h"

namespace CLI {
class App;
}

namespace weft {

// What a command works with. Parsing a subcommand sets `action`; running it is the caller's.
struct CommandContext {
  const Clock& clock;
  Logger& logger;
  std::function<absl::Status()> action;
};

// Adds the flags that all commands running a model share.
void AddModelFlags(CLI::App& command, ModelFlags& flags);

// Parses, runs and reports: errors go to stderr as one line. Returns the exit code.
int RunCommandLine(int argc, const char* const* argv, const Clock& clock, Logger& logger);

// Writes text to stdout. Errors: UNAVAILABLE if stdout is closed or full.
absl::Status Print(const std::string& text);

}  // namespace weft
