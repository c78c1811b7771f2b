// The flags of `weft bench`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "common/base/status_macros.h"
#include "coordinator/cli/commands/bench.h"
#include "coordinator/cli/commands/commands.h"

namespace weft {
namespace {

struct BenchFlags {
  ModelFlags model;
  BenchOptions options;
  bool json = false;
};

// Most tokens that any test puts into the cache.
int64_t NeededContext(const BenchOptions& options) {
  int64_t needed = 1;
  for (const int64_t count : options.prefill) needed = std::max(needed, count);
  for (const int64_t count : options.decode) needed = std::max(needed, options.depth + count);
  return needed;
}

absl::Status Bench(BenchFlags& flags, CommandContext& context) {
  InstructionSet isa = BestInstructionSet();
  if (!flags.model.instruction_set.empty()) {
    ASSIGN_OR_RETURN(isa, ParseInstructionSet(flags.model.instruction_set));
  }
  const int64_t needed = NeededContext(flags.options);
  if (flags.model.context == -1) flags.model.context = needed;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalSession> session,
      LocalSession::Open(flags.model, {.context = needed}, context.clock, context.logger));
  ASSIGN_OR_RETURN(const BenchReport report, RunBench(*session, flags.options, isa));
  return Print(flags.json ? BenchJson(report) : BenchText(report));
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "tokens per second, as shares of the machine's limits");
  command->footer("Example: weft bench -m model.gguf -p 512 -n 128 -r 5");
  AddModelFlags(*command, flags->model);
  command->add_option("-p,--prefill", flags->options.prefill, "prompt tokens, one test per value")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-n,--decode", flags->options.decode, "tokens to decode, one test per value")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-r,--repetitions", flags->options.repetitions, "runs of each test")
      ->capture_default_str();
  command->add_option("-d,--depth", flags->options.depth, "tokens in the cache before decoding")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Bench(*flags, context); }; });
}

}  // namespace weft
