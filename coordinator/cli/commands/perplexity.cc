// weft perplexity: how well a model predicts a text.
//
// Method: the text is tokenised whole (no special tokens), cut into consecutive chunks of the
// context size (a last incomplete one is dropped), each chunk is evaluated on its own, and the
// predictions of its second half are scored. Where the model wants a begin-of-text token, it stands
// in for the first token of each chunk.
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/progress_bar.h"
#include "coordinator/engine/generator.h"
#include "coordinator/sampling/sampler.h"

namespace weft {
namespace {

constexpr int64_t kDefaultContext = 512;

struct PerplexityFlags {
  ModelFlags model;
  std::string file;
  bool json = false;
};

struct Likelihood {
  double sum = 0;  // of negative log-likelihoods
  double sum_squares = 0;
  int64_t count = 0;
  int64_t chunks = 0;

  double mean() const { return sum / static_cast<double>(count); }
  double perplexity() const { return std::exp(mean()); }
  // Standard error of the perplexity, by propagating that of the mean.
  double error() const {
    if (count < 2) return 0;
    const double variance = sum_squares / static_cast<double>(count) - mean() * mean();
    return perplexity() * std::sqrt(std::max(0.0, variance) / static_cast<double>(count - 1));
  }
};

double NegativeLogLikelihood(absl::Span<const float> logits, int32_t token) {
  double maximum = logits[0];
  for (const float x : logits) maximum = std::max(maximum, double{x});
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - maximum);
  return maximum + std::log(sum) - logits[token];
}

// Scores the predictions at positions size / 2 to size - 2 of one chunk.
absl::Status ScoreChunk(ModelRunner& runner, absl::Span<const int32_t> tokens, int64_t first_token,
                        Likelihood& likelihood) {
  runner.Truncate(0, 0);
  const int64_t size = static_cast<int64_t>(tokens.size());
  const int64_t first_scored = size / 2;
  for (int64_t at = 0; at < size; at += runner.options().ubatch) {
    const int64_t count = std::min(runner.options().ubatch, size - at);
    std::vector<BatchToken> batch;
    for (int64_t i = at; i < at + count; ++i) {
      const bool replace = i == 0 && first_token >= 0;
      const int32_t token = replace ? static_cast<int32_t>(first_token) : tokens[i];
      batch.push_back({token, i, 0, i >= first_scored && i + 1 < size});
    }
    ASSIGN_OR_RETURN(const std::vector<float> rows, runner.Step(batch));
    size_t row = 0;
    for (const BatchToken& token : batch) {
      if (!token.output) continue;
      const auto width = static_cast<size_t>(runner.n_vocab());
      const absl::Span<const float> logits =
          absl::MakeConstSpan(rows).subspan(row++ * width, width);
      RETURN_IF_ERROR(CheckLogits(logits));
      const double nll = NegativeLogLikelihood(logits, tokens[token.position + 1]);
      likelihood.sum += nll;
      likelihood.sum_squares += nll * nll;
      ++likelihood.count;
    }
  }
  ++likelihood.chunks;
  return absl::OkStatus();
}

absl::Status Perplexity(const PerplexityFlags& flags, CommandContext& context) {
  // Mapped, not read: an endless special file is refused, and a huge text takes no memory of its
  // own.
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(flags.file));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalSession> session,
      LocalSession::Open(flags.model, {.context = kDefaultContext, .all_outputs = true},
                         context.clock, context.logger));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session->tokenizer());
  EncodeOptions plain;
  plain.add_special = false;
  plain.parse_special = false;
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer->Encode(text, plain));
  ModelRunner& runner = session->runner();
  const auto size = static_cast<size_t>(runner.options().context);
  if (size < 4) return absl::InvalidArgumentError("-c: want at least 4 tokens");
  if (tokens.size() < size) {
    return absl::InvalidArgumentError(absl::StrCat(flags.file, ": ", tokens.size(),
                                                   " tokens do not fill one chunk of ", size,
                                                   "; lower -c or give more text"));
  }
  const int64_t first_token = tokenizer->adds_bos() ? tokenizer->bos() : -1;
  const auto chunks = static_cast<int64_t>(tokens.size() / size);
  Likelihood likelihood;
  ProgressBar bar(context.clock, "perplexity", "chunks");
  for (int64_t i = 0; i < chunks; ++i) {
    bar.Update(i, chunks);
    RETURN_IF_ERROR(ScoreChunk(runner, absl::MakeConstSpan(tokens).subspan(i * size, size),
                               first_token, likelihood));
  }
  bar.Finish();
  if (flags.json) {
    const nlohmann::ordered_json json = {{"ppl", likelihood.perplexity()},
                                         {"stderr", likelihood.error()},
                                         {"chunks", likelihood.chunks},
                                         {"tokens", likelihood.count}};
    return Print(json.dump() + "\n");
  }
  context.logger.Info(absl::StrFormat("%d chunks of %d tokens, %d predictions, +/- %.4f",
                                      likelihood.chunks, size, likelihood.count,
                                      likelihood.error()));
  return Print(absl::StrFormat("PPL = %.4f\n", likelihood.perplexity()));
}

}  // namespace

void AddPerplexityCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* command = app.add_subcommand("perplexity", "how well a model predicts a text");
  command->footer(
      "Example: weft perplexity -m models/shakespeare-q8_0.gguf -f models/heldout.txt -c 256");
  AddModelFlags(*command, flags->model);
  command->add_option("-f,--file", flags->file, "the text, UTF-8")->required();
  command->add_flag("--json", flags->json, "print {\"ppl\", \"stderr\", \"chunks\", \"tokens\"}");
  command->callback([flags, &context] {
    context.action = [flags, &context] { return Perplexity(*flags, context); };
  });
}

}  // namespace weft
