// The flags that say how tokens are chosen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/sampling/sampler_options.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace CLI {
class App;
}

namespace weft {

// As typed.
struct SamplerFlags {
  SamplerOptions options;
  std::vector<std::string> biases;    // 15043-1.5, 2-inf
  std::vector<std::string> breakers;  // empty: those of the field; "none": none
  int32_t mirostat = 0;
  int64_t seed = -1;
};

void AddSamplerFlags(CLI::App& command, SamplerFlags& flags);

// Checked, but for what needs a tokenizer; `random_seed` is for --seed -1. Errors: INVALID_ARGUMENT
// naming the flag.
absl::StatusOr<SamplerOptions> ParseSamplerFlags(const SamplerFlags& flags, uint64_t random_seed);

// Finds the breakers of DRY in the vocabulary, if DRY is on, and checks the ids of --logit-bias.
// Errors: INVALID_ARGUMENT naming the flag.
absl::Status ResolveSamplerTokens(const SamplerFlags& flags, const Tokenizer& tokenizer,
                                  SamplerOptions& options);

}  // namespace weft
