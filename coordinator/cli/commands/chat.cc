// weft chat: a conversation in the terminal.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/cli/chat/chat_shell.h"
#include "coordinator/cli/chat/history_file.h"
#include "coordinator/cli/chat/interrupt.h"
#include "coordinator/cli/chat/line_reader.h"
#include "coordinator/cli/chat_template_file.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/local_serving_session.h"
#include "coordinator/cli/sampler_flags.h"
#include "coordinator/grammar/tokenizer_trie.h"
#include "coordinator/http/template_format.h"
#include "coordinator/serving/inference_loop.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 4096;

struct ChatFlags {
  ModelFlags model;
  SamplerFlags sampler;
  std::string system;
  std::string chat_template;  // a file
  int64_t count = -1;
  bool json = false;
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where lines are remembered; empty: nowhere.
std::string OpenHistory(Logger& logger) {
  std::string path = HistoryPath(Environment("XDG_STATE_HOME"), Environment("HOME"));
  if (path.empty()) return path;
  const absl::Status made = PrepareHistoryFile(path);
  if (made.ok()) return path;
  logger.Warning(StdView(absl::StrCat("no history: ", made.message())));
  return "";
}

absl::StatusOr<std::unique_ptr<LineReader>> MakeReader(bool interactive, Interrupt& interrupt,
                                                       Logger& logger) {
  const bool editing = interactive && isatty(STDOUT_FILENO) != 0;
  if (editing && HasLineEditing()) return MakeEditLineReader(OpenHistory(logger), interrupt);
  if (editing) logger.Info("without line editing and history: built without libedit");
  return MakePlainLineReader(interactive, interrupt);
}

absl::Status Chat(ChatFlags& flags, CommandContext& context) {
  if (flags.count == 0 || flags.count < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("-n: ", flags.count, " tokens, want at least 1, or -1"));
  }
  ChatShellOptions options;
  options.model = std::filesystem::path(flags.model.model).stem().string();
  options.system = ReplaceInvalidUtf8(flags.system);
  options.most_tokens = flags.count;
  options.interactive = isatty(STDIN_FILENO) != 0;
  options.shows_thoughts = isatty(STDOUT_FILENO) != 0;
  options.json = flags.json;
  ASSIGN_OR_RETURN(options.sampler, ParseSamplerFlags(flags.sampler, std::random_device{}()));
  ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(flags.model.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(file->metadata()));
  RETURN_IF_ERROR(ResolveSamplerTokens(flags.sampler, *tokenizer, options.sampler));
  ASSIGN_OR_RETURN(ChatTemplate chat_template,
                   ReadChatTemplate(flags.chat_template, *file, *tokenizer));
  const TemplateFormat format(std::move(chat_template), *tokenizer, MakeTokenTrie(*tokenizer));

  // Before other threads start, so that all leave the signal to it.
  ASSIGN_OR_RETURN(const std::unique_ptr<SignalInterrupt> interrupt, SignalInterrupt::Create());
  // Weights may take minutes.
  ASSIGN_OR_RETURN(std::unique_ptr<FatalInterrupt> loading, FatalInterrupt::Create(*interrupt));
  const SessionNeeds needs{.context = kDefaultContext};
  ASSIGN_OR_RETURN(const std::unique_ptr<InferenceLoop> loop,
                   InferenceLoop::Start(OpenLocalServingSession(flags.model, needs, context.clock,
                                                                context.logger, nullptr),
                                        *tokenizer, {}, context.clock, context.logger));
  loading.reset();
  LoopEngine engine(*loop);
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> reader,
                   MakeReader(options.interactive, *interrupt, context.logger));
  if (options.interactive) {
    context.logger.Info(StdView(absl::StrCat("chat with ", options.model, ", context ",
                                             engine.context(), " tokens; /help says more")));
  }
  ChatShell shell(options,
                  {.engine = &engine,
                   .format = &format,
                   .reader = reader.get(),
                   .interrupt = interrupt.get(),
                   .print = Print},
                  context.clock, context.logger);
  return shell.Run();
}

}  // namespace

void AddChatCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app.add_subcommand("chat", "a conversation in the terminal");
  command->footer(
      "Lines are messages; /reset, /save FILE, /help and /quit are commands. From a pipe, each "
      "line "
      "is answered in turn.\n"
      "Example: weft chat -m model.gguf --system \"Be brief.\" --temp 0.7");
  AddModelFlags(*command, flags->model);
  AddSamplerFlags(*command, flags->sampler);
  command->add_option("--system", flags->system, "the system prompt");
  command->add_option("--chat-template", flags->chat_template,
                      "a file with a Jinja template to use instead of the model's");
  command->add_option("-n,--predict", flags->count, "most tokens of an answer; -1: until its end")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object per answer");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Chat(*flags, context); }; });
}

}  // namespace weft
