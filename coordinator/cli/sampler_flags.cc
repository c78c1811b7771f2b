#include "coordinator/cli/sampler_flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// TOKEN+BIAS or TOKEN-BIAS.
absl::StatusOr<TokenBias> ParseBias(const std::string& text) {
  TokenBias bias;
  const size_t sign = text.find_first_not_of("0123456789");
  const bool split =
      sign != 0 && sign != std::string::npos && (text[sign] == '+' || text[sign] == '-');
  if (split && absl::SimpleAtoi(text.substr(0, sign), &bias.id) &&
      absl::SimpleAtof(text.substr(sign), &bias.bias)) {
    return bias;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--logit-bias: '", text, "' is not TOKEN+BIAS or TOKEN-BIAS (15043-1.5, 2-inf)"));
}

void AddTruncationFlags(CLI::App& command, SamplerOptions& o) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    command.add_option(name, value, text)->capture_default_str();
  };
  add("--temp", o.temperature, "temperature; 0: always the likeliest token");
  add("--dynatemp-range", o.dynatemp_range,
      "temperatures from --temp less this to --temp plus this, by entropy; 0: off");
  add("--dynatemp-exp", o.dynatemp_exponent, "exponent of the share of the entropy");
  add("--top-nsigma", o.top_n_sigma,
      "drop tokens more than this many deviations below the likeliest; -1: off");
  add("--top-k", o.top_k, "keep the K likeliest tokens; 0: all");
  add("--typical", o.typical_p, "keep the most typical tokens up to this probability mass; 1: all");
  add("--top-p", o.top_p, "keep tokens up to this probability mass; 1: all");
  add("--min-p", o.min_p, "drop tokens below this share of the likeliest; 0: none");
  add("--xtc-probability", o.xtc_probability,
      "chance that of the tokens above --xtc-threshold only the least likely stays; 0: off");
  add("--xtc-threshold", o.xtc_threshold, "see --xtc-probability; above 0.5: off");
  add("--min-keep", o.min_keep, "tokens that typical, top-p, min-p and XTC leave at least");
}

void AddPenaltyFlags(CLI::App& command, SamplerOptions& o) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    command.add_option(name, value, text)->capture_default_str();
  };
  add("--repeat-penalty", o.repeat_penalty, "weaken recent tokens; 1: off");
  add("--repeat-last-n", o.penalty_window, "how many tokens are recent; -1: all");
  add("--frequency-penalty", o.frequency_penalty, "per occurrence; 0: off");
  add("--presence-penalty", o.presence_penalty, "once; 0: off");
  add("--dry-multiplier", o.dry.multiplier, "weaken tokens that continue a repetition; 0: off");
  add("--dry-base", o.dry.base, "how fast that grows with the length of the repetition");
  add("--dry-allowed-length", o.dry.allowed_length, "repetitions of fewer tokens are free");
  add("--dry-penalty-last-n", o.dry.window, "where repetitions are looked for; -1: everywhere");
  add("--mirostat-ent", o.mirostat_tau, "mirostat: surprise aimed at, in bits");
  add("--mirostat-lr", o.mirostat_eta, "mirostat: how fast it is approached");
}

}  // namespace

void AddSamplerFlags(CLI::App& command, SamplerFlags& flags) {
  AddTruncationFlags(command, flags.options);
  AddPenaltyFlags(command, flags.options);
  command
      .add_option("--dry-sequence-breaker", flags.breakers,
                  "a text across which nothing is a repetition; may stand several times; none: "
                  "no such text; default: newline, colon, quotation mark, asterisk")
      ->allow_extra_args(false);
  command
      .add_option("--mirostat", flags.mirostat,
                  "mirostat 1 or 2 instead of penalties and truncation; 0: off")
      ->capture_default_str();
  command
      .add_option("-l,--logit-bias", flags.biases,
                  "TOKEN+BIAS or TOKEN-BIAS, added to the logit of a token id; may stand "
                  "several times; TOKEN-inf: never")
      ->allow_extra_args(false);
  command.add_option("-s,--seed", flags.seed, "seed of the sampler; -1: a random one")
      ->capture_default_str();
}

absl::StatusOr<SamplerOptions> ParseSamplerFlags(const SamplerFlags& flags, uint64_t random_seed) {
  SamplerOptions options = flags.options;
  for (const std::string& text : flags.biases) {
    ASSIGN_OR_RETURN(options.logit_bias.emplace_back(), ParseBias(text));
  }
  if (flags.mirostat < 0 || flags.mirostat > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mirostat is ", flags.mirostat, ", want 0, 1 or 2"));
  }
  options.mirostat = static_cast<Mirostat>(flags.mirostat);
  if (flags.seed < -1) {
    return absl::InvalidArgumentError(absl::StrCat("--seed is ", flags.seed, ", want >= -1"));
  }
  options.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : random_seed;
  RETURN_IF_ERROR(CheckSamplerOptions(options));
  return options;
}

absl::Status ResolveSamplerTokens(const SamplerFlags& flags, const Tokenizer& tokenizer,
                                  SamplerOptions& options) {
  for (const TokenBias& bias : options.logit_bias) {
    if (bias.id < tokenizer.vocabulary_size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--logit-bias: token ", bias.id, ", there are ", tokenizer.vocabulary_size()));
  }
  if (!DryChangesLogits(options)) return absl::OkStatus();
  std::vector<std::string> breakers = flags.breakers;
  if (breakers.empty()) breakers = DefaultDryBreakers();
  std::erase(breakers, "none");
  DryVocabulary vocabulary;
  vocabulary.size = tokenizer.vocabulary_size();
  vocabulary.piece = [&](int32_t id) { return tokenizer.Piece(id, false); };
  vocabulary.encode = [&](std::string_view text) {
    return tokenizer.Encode(text, EncodeOptions{false, false});
  };
  ASSIGN_OR_RETURN(DryBreakers found, ResolveDryBreakers(breakers, vocabulary));
  options.dry_breakers = std::make_shared<const DryBreakers>(std::move(found));
  return absl::OkStatus();
}

}  // namespace weft
