// weft run: continue a prompt and stream the text.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/grammar_flags.h"
#include "coordinator/cli/process_counters.h"
#include "coordinator/cli/progress_bar.h"
#include "coordinator/cli/sampler_flags.h"
#include "coordinator/engine/generator.h"
#include "coordinator/sampling/sampler.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 4096;
constexpr size_t kMostPromptBytes = size_t{64} << 20;

struct RunFlags {
  ModelFlags model;
  SamplerFlags sampler;
  GrammarFlags grammar;
  std::string prompt;
  int64_t count = 128;
  bool json = false;
  bool stats = false;
  bool ignore_end = false;
  bool all_logits = false;
  bool verbose = false;
};

// Everything on standard input. Errors: OUT_OF_RANGE beyond a size that no context holds.
absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  std::array<char, 65536> block;
  while (std::cin.read(block.data(), block.size()) || std::cin.gcount() > 0) {
    text.append(block.data(), static_cast<size_t>(std::cin.gcount()));
    if (text.size() > kMostPromptBytes) {
      return absl::OutOfRangeError(
          absl::StrCat("-p -: standard input has more than ", kMostPromptBytes, " bytes"));
    }
  }
  return text;
}

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// What was planned, and that nothing was planned again while tokens came.
nlohmann::ordered_json PlanJson(const RunnerCounters& counters) {
  return {
      {"graphs_planned", counters.graphs_built},        {"graphs_reused", counters.graphs_reused},
      {"logits_fetched", counters.logits_fetched},      {"replans", counters.replans},
      {"replan_reason", counters.replan_reason},        {"arena_bytes", counters.arena_bytes},
      {"arena_lower_bound", counters.arena_lower_bound}};
}

// What processes had done when the prompt, the first token and the last came.
struct RunCounters {
  explicit RunCounters(const Clock& clock) : timer(clock) {}

  std::vector<ProcessCounters> prompt;
  std::vector<ProcessCounters> first;
  std::vector<ProcessCounters> last;
  TokenTimer timer;
};

absl::Status Report(const RunFlags& flags, const GenerateResult& result, const std::string& text,
                    const RunnerCounters& counters, const RunCounters& processes, Logger& logger) {
  const auto count = static_cast<int64_t>(result.tokens.size());
  const double prompt_rate = PerSecond(result.prompt_tokens, result.prompt_seconds);
  // The first token comes from the prompt's logits.
  const double decode_rate = PerSecond(std::max<int64_t>(count - 1, 0), result.decode_seconds);
  logger.Info(absl::StrFormat(
      "load: %.2f s; prompt: %d tokens in %.2f s (%.1f tokens/s); decode: %d "
      "tokens in %.2f s (%.1f tokens/s); %s",
      counters.load_seconds, result.prompt_tokens, result.prompt_seconds, prompt_rate, count,
      result.decode_seconds, decode_rate, AbslView(StopReasonText(result.stop))));
  if (!flags.json) {
    if (flags.stats) {
      logger.Info(TokenTimesText(processes.timer.tokens()));
      const std::string each = ProcessCountersText(processes.first, processes.last);
      for (const absl::string_view line : absl::StrSplit(each, '\n', absl::SkipEmpty())) {
        logger.Info(StdView(line));
      }
    }
    return absl::OkStatus();
  }
  nlohmann::ordered_json json = {{"text", text},
                                 {"tokens", result.tokens},
                                 {"stop", StopReasonText(result.stop)},
                                 {"load_seconds", counters.load_seconds},
                                 {"weights_seconds", counters.weights_seconds},
                                 {"prompt_tokens", result.prompt_tokens},
                                 {"prompt_seconds", result.prompt_seconds},
                                 {"prompt_tokens_per_s", prompt_rate},
                                 {"decode_seconds", result.decode_seconds},
                                 {"decode_tokens_per_s", decode_rate},
                                 {"plan", PlanJson(counters)}};
  if (flags.stats) {
    json["token"] = TokenTimesJson(processes.timer.tokens());
    json["processes"] = ProcessCountersJson(processes.first, processes.last);
    json["prompt_processes"] = ProcessCountersJson(processes.prompt, processes.first);
  }
  return Print(json.dump() + "\n");
}

absl::Status CheckRunFlags(const RunFlags& flags) {
  if (flags.count < -1) {
    return absl::InvalidArgumentError(absl::StrCat("-n: ", flags.count, " tokens, want >= -1"));
  }
  if (flags.grammar.any() && flags.ignore_end) {
    return absl::InvalidArgumentError(
        "--ignore-eos: a text that follows a grammar ends where the grammar does");
  }
  return absl::OkStatus();
}

absl::Status Run(RunFlags& flags, CommandContext& context) {
  RETURN_IF_ERROR(CheckRunFlags(flags));
  ASSIGN_OR_RETURN(SamplerOptions options,
                   ParseSamplerFlags(flags.sampler, std::random_device{}()));
  Logger talkative("weft", LogLevel::kDebug);
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalSession> session,
                   LocalSession::Open(flags.model,
                                      {.context = kDefaultContext,
                                       .sampler = flags.all_logits ? nullptr : &options},
                                      context.clock, flags.verbose ? talkative : context.logger));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session->tokenizer());
  std::string prompt = flags.prompt;
  if (prompt == "-") {
    ASSIGN_OR_RETURN(prompt, ReadStandardInput());
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer->Encode(prompt, EncodeOptions{}));
  if (tokens.empty() && tokenizer->bos() >= 0) tokens.push_back(tokenizer->bos());
  RETURN_IF_ERROR(ResolveSamplerTokens(flags.sampler, *tokenizer, options));
  if (flags.verbose) context.logger.Info("sampler: " + SamplerChainText(options));
  Sampler sampler(options);
  for (const int32_t token : tokens) sampler.Accept(token);
  std::unique_ptr<GrammarMatcher> matcher;
  if (flags.grammar.any()) {
    ASSIGN_OR_RETURN(matcher, MakeMatcher(flags.grammar, *tokenizer, context.logger));
    sampler.SetFilter(matcher.get());
  }

  std::string text;
  Utf8Stream stream;
  absl::Status written;
  const auto show = [&](const std::string& piece) {
    text += piece;
    if (!flags.json) written.Update(Print(piece));
  };
  GenerateCallbacks callbacks;
  callbacks.choose = [&](absl::Span<const float> logits) { return sampler.Sample(logits); };
  callbacks.choose_candidate = [&](const CandidateRow& row) { return sampler.SampleFrom(row); };
  callbacks.changed = [&] { return sampler.ChangedIds(); };
  if (!flags.ignore_end) {
    callbacks.ends = [&](int32_t token) { return tokenizer->IsEndOfGeneration(token); };
  }
  RunCounters processes(context.clock);
  if (flags.stats) callbacks.timer = &processes.timer;
  processes.prompt = ReadProcessCounters(session->group(), session->fleet());
  callbacks.emit = [&](int32_t token) {
    if (flags.stats && processes.first.empty()) {
      processes.first = ReadProcessCounters(session->group(), session->fleet());
    }
    sampler.Accept(token);
    show(stream.Append(tokenizer->Piece(token, false)));
    if (matcher != nullptr) written.Update(matcher->Accept(token));
    return written.ok() && (matcher == nullptr || !matcher->MustEnd());
  };
  ProgressBar bar(context.clock, "reading the prompt", "tokens");
  callbacks.progress = [&](int64_t done, int64_t total) {
    bar.Update(done, total);
    if (done == total) bar.Finish();  // before the first token
  };
  ASSIGN_OR_RETURN(GenerateResult result,
                   Generate(session->runner(), context.clock, tokens, flags.count, callbacks));
  if (matcher != nullptr && matcher->MustEnd()) result.stop = StopReason::kEndOfText;
  processes.last = ReadProcessCounters(session->group(), session->fleet());
  show(stream.Finish());
  if (!flags.json) written.Update(Print("\n"));
  RETURN_IF_ERROR(written);
  return Report(flags, result, text, session->runner().counters(), processes, context.logger);
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "continue a prompt");
  command->footer(
      "Example: weft run -m model.gguf -p \"Once upon a time\" -n 64 --temp 0.7 --seed 1");
  AddModelFlags(*command, flags->model);
  command->add_option("-p,--prompt", flags->prompt, "the prompt; - reads standard input")
      ->required();
  command->add_option("-n,--predict", flags->count, "most tokens to add; -1: until the end")
      ->capture_default_str();
  AddSamplerFlags(*command, flags->sampler);
  AddGrammarFlags(*command, flags->grammar);
  command->add_flag("--ignore-eos", flags->ignore_end, "go on after the end-of-text token");
  command->add_flag("--all-logits", flags->all_logits,
                    "fetch every token's logits, not the likeliest ones; same text, slower");
  command->add_flag("--verbose", flags->verbose,
                    "print the chain of samplers, links and choices of the plan");
  command->add_flag("--json", flags->json, "print one JSON object instead of the text");
  command->add_flag(
      "--stats", flags->stats,
      "where the time of a token went, and messages, bytes and time per step of each process "
      "while tokens come; with --json also while the prompt is read");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Run(*flags, context); }; });
}

}  // namespace weft
