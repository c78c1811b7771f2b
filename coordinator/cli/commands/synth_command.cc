// The flags of `weft synth`.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/base/status_macros.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/commands/synth.h"
#include "coordinator/cli/progress_bar.h"

namespace weft {
namespace {

struct SynthFlags {
  SynthOptions options;
  std::string shape = "160m";
  SynthShape custom;  // values above 0 replace those of the named shape
  bool untied = false;
  bool json = false;
};

void Override(int64_t& value, int64_t custom) {
  if (custom != 0) value = custom;
}

absl::Status Synth(SynthFlags& flags, CommandContext& context) {
  SynthOptions& options = flags.options;
  ASSIGN_OR_RETURN(SynthShape shape, NamedSynthShape(flags.shape));
  const SynthShape& custom = flags.custom;
  Override(shape.embedding_length, custom.embedding_length);
  Override(shape.layer_count, custom.layer_count);
  Override(shape.head_count, custom.head_count);
  Override(shape.head_count_kv, custom.head_count_kv);
  Override(shape.feed_forward_length, custom.feed_forward_length);
  Override(shape.vocabulary_size, custom.vocabulary_size);
  Override(shape.head_length, custom.head_length);
  Override(shape.expert_count, custom.expert_count);
  Override(shape.expert_used_count, custom.expert_used_count);
  Override(shape.expert_feed_forward_length, custom.expert_feed_forward_length);
  if (flags.custom.context_length != SynthShape{}.context_length) {
    shape.context_length = flags.custom.context_length;
  }
  options.model.shape = shape;
  options.model.tied_output = !flags.untied;
  ProgressBar bar(context.clock, "writing " + options.path, "B");
  int64_t bytes = 0;
  options.progress = [&](int64_t done, int64_t total) {
    bytes = total;
    bar.Update(done, total);
  };
  RETURN_IF_ERROR(WriteSyntheticModel(options));
  bar.Finish();
  if (flags.json) {
    return Print(nlohmann::ordered_json({{"path", options.path}, {"tensor_bytes", bytes}}).dump() +
                 "\n");
  }
  context.logger.Info(options.path + ": " + BytesText(static_cast<double>(bytes)));
  return absl::OkStatus();
}

}  // namespace

void AddSynthCommand(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<SynthFlags>();
  SynthOptions& options = flags->options;
  SynthShape& custom = flags->custom;
  CLI::App* command = app.add_subcommand("synth", "write a model with random weights");
  command->footer("Example: weft synth --arch llama --shape 160m --type Q4_0 /tmp/160m.gguf");
  command->add_option("file", options.path, "the GGUF file to write")->required();
  command->add_option("--arch", options.model.architecture, "llama, qwen2, qwen3 or qwen3moe")
      ->capture_default_str();
  command->add_option("--shape", flags->shape, "160m, 1b, 3b or 8b")->capture_default_str();
  command->add_option("--type", options.model.type, "type of the matrices, or Q4_K_M")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "seed of the weights")->capture_default_str();
  command->add_flag("--untied", flags->untied, "write an output matrix of its own");
  command->add_flag("--attention-bias", options.model.attention_bias, "biases of Q, K and V");
  command->add_flag("--json", flags->json, "print one JSON object");
  const std::string group = "Other shapes";
  const auto extent = [&](const char* name, int64_t& value, const char* what) {
    command->add_option(name, value, what)->group(group);
  };
  extent("--embedding", custom.embedding_length, "embedding length");
  extent("--layers", custom.layer_count, "layers");
  extent("--heads", custom.head_count, "query heads");
  extent("--heads-kv", custom.head_count_kv, "KV heads");
  extent("--head", custom.head_length, "elements of a head");
  extent("--ff", custom.feed_forward_length, "feed-forward length");
  extent("--vocab", custom.vocabulary_size, "tokens");
  extent("--experts", custom.expert_count, "experts of each layer; 0: dense");
  extent("--experts-used", custom.expert_used_count, "experts a token uses");
  extent("--expert-ff", custom.expert_feed_forward_length, "feed-forward length of an expert");
  extent("--context", custom.context_length, "context length in the metadata");
  command->callback(
      [flags, &context] { context.action = [flags, &context] { return Synth(*flags, context); }; });
}

}  // namespace weft
