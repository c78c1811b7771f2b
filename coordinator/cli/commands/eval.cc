// weft eval: exact logits and greedy tokens of a list of token ids. This is how correctness is
// checked.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/engine/generator.h"
#include "coordinator/sampling/sampler.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 4096;

struct EvalFlags {
  ModelFlags model;
  std::string tokens;
  std::string logits_path;
  int64_t greedy = 0;
  bool json = false;
};

absl::StatusOr<std::vector<int32_t>> ParseTokens(const std::string& text) {
  std::vector<int32_t> tokens;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t before = tokens.size();
    for (const absl::string_view word :
         absl::StrSplit(part, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      int32_t token = 0;
      if (!absl::SimpleAtoi(word, &token)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--tokens: '", word.substr(0, 32), "' is not a token id"));
      }
      tokens.push_back(token);
    }
    if (tokens.size() == before) {
      return absl::InvalidArgumentError("--tokens: no token ids where there should be one");
    }
  }
  return tokens;
}

// Feeds the prompt in steps of ubatch and appends each step's logits to the file. Returns the last
// row.
absl::StatusOr<std::vector<float>> Feed(ModelRunner& runner, absl::Span<const int32_t> tokens,
                                        OutputFile* out) {
  std::vector<float> rows;
  const auto ubatch = static_cast<size_t>(runner.options().ubatch);
  for (size_t at = 0; at < tokens.size(); at += ubatch) {
    ASSIGN_OR_RETURN(rows, Prefill(runner, tokens.subspan(at, ubatch), static_cast<int64_t>(at),
                                   out != nullptr));
    if (out != nullptr) RETURN_IF_ERROR(out->Write(rows.data(), rows.size() * sizeof(float)));
  }
  const auto width = static_cast<size_t>(runner.n_vocab());
  return std::vector<float>(rows.end() - static_cast<std::ptrdiff_t>(width), rows.end());
}

// The tokens picked by largest logit after the prompt, never stopping at end-of-text.
absl::StatusOr<std::vector<int32_t>> Greedy(ModelRunner& runner, std::vector<float> logits,
                                            int64_t position, int64_t count) {
  std::vector<int32_t> tokens;
  while (static_cast<int64_t>(tokens.size()) < count) {
    RETURN_IF_ERROR(CheckLogits(logits));
    tokens.push_back(ArgMax(logits));
    if (static_cast<int64_t>(tokens.size()) == count) break;
    const BatchToken next = {tokens.back(), position++, 0, true};
    ASSIGN_OR_RETURN(logits, runner.Step({&next, 1}));
  }
  return tokens;
}

absl::Status Eval(const EvalFlags& flags, CommandContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ParseTokens(flags.tokens));
  if (flags.greedy < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--greedy: ", flags.greedy, " tokens"));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalSession> session,
      LocalSession::Open(flags.model,
                         {.context = kDefaultContext, .all_outputs = !flags.logits_path.empty()},
                         context.clock, context.logger));
  ModelRunner& runner = session->runner();
  // The last greedy token need not fit: it is not fed.
  const int64_t positions =
      static_cast<int64_t>(tokens.size()) + std::max<int64_t>(flags.greedy - 1, 0);
  if (positions > runner.options().context) {
    return absl::OutOfRangeError(absl::StrCat("--tokens and --greedy: ", positions,
                                              " positions, the context holds ",
                                              runner.options().context, "; raise -c"));
  }
  std::unique_ptr<OutputFile> out;
  if (!flags.logits_path.empty()) {
    std::vector<std::string> inputs;
    inputs.reserve(static_cast<size_t>(session->file().file_count()));
    for (int i = 0; i < session->file().file_count(); ++i) {
      inputs.push_back(session->file().file(i).path());
    }
    ASSIGN_OR_RETURN(out, OutputFile::Create(flags.logits_path, inputs));
  }
  ASSIGN_OR_RETURN(std::vector<float> last, Feed(runner, tokens, out.get()));
  if (out != nullptr) RETURN_IF_ERROR(out->Finish());
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> greedy,
      Greedy(runner, std::move(last), static_cast<int64_t>(tokens.size()), flags.greedy));
  if (flags.json) {
    return Print(nlohmann::ordered_json({{"greedy", greedy}}).dump() + "\n");
  }
  return Print(absl::StrJoin(greedy, " ") + "\n");
}

}  // namespace

void AddEvalCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand("eval", "logits and greedy tokens of token ids");
  command->footer("Example: weft eval -m model.gguf --tokens 1,2,3 --logits out.f32 --greedy 16");
  AddModelFlags(*command, flags->model);
  command->add_option("--tokens", flags->tokens, "token ids, separated by commas; nothing is added")
      ->required();
  command->add_option(
      "--logits", flags->logits_path,
      "write the logits of every prompt position: raw little-endian F32, a row each");
  command->add_option("--greedy", flags->greedy, "then continue by N likeliest tokens")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print {\"greedy\": [...]} instead of ids");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Eval(*flags, context); }; });
}

}  // namespace weft
