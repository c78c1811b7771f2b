// What a user can ask of a sampler, and what these wishes need from a step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/sampling/dry.h"

namespace weft {

// Added to the logit of a token; -infinity: never choose it.
struct TokenBias {
  int32_t id = 0;
  float bias = 0;
};

enum class Mirostat : uint8_t { kOff = 0, kVersion1 = 1, kVersion2 = 2 };

// Defaults are those of the field (spec J.2).
struct SamplerOptions {
  float temperature = 0.8f;     // <= 0: greedy
  int32_t top_k = 40;           // <= 0: off
  float top_p = 0.95f;          // >= 1: off
  float min_p = 0.05f;          // <= 0: off
  float repeat_penalty = 1.0f;  // 1: off
  float frequency_penalty = 0;  // subtracted per occurrence
  float presence_penalty = 0;   // subtracted once
  int32_t penalty_window = 64;  // last tokens that penalties look at; 0: off, -1: all
  float typical_p = 1;          // >= 1: off
  float top_n_sigma = -1;       // <= 0: off
  float xtc_probability = 0;    // <= 0: off
  float xtc_threshold = 0.1f;   // > 0.5: off
  float dynatemp_range = 0;     // temperature -range to +range by entropy; <= 0: off
  float dynatemp_exponent = 1;
  DryOptions dry;
  std::shared_ptr<const DryBreakers>
      dry_breakers;                    // shared by all samplers of a server; may be null
  Mirostat mirostat = Mirostat::kOff;  // instead of penalties and truncation
  float mirostat_tau = 5;              // surprise aimed at, in bits
  float mirostat_eta = 0.1f;           // how fast it is approached
  int32_t min_keep = 1;                // what typical, top-p, min-p and XTC leave
  std::vector<TokenBias> logit_bias;   // biases of one id add up
  uint64_t seed = 0;
};

// Errors: INVALID_ARGUMENT naming the option, as `weft run` calls it, and its value.
absl::Status CheckSamplerOptions(const SamplerOptions& options);

// The stages that do something, in order, with their values: "top-k 40 -> draw (seed 1)".
std::string SamplerChainText(const SamplerOptions& options);

// Whether penalties do anything.
bool PenaltiesChangeLogits(const SamplerOptions& options);
// Whether DRY does anything.
bool DryChangesLogits(const SamplerOptions& options);

// --- What to ask a step for ---

// Candidates that nearly always tell for these options: a power of two, at most n_vocab; 0 where
// only all logits tell, or for a vocabulary beyond 2^20 ids, of which steps return all logits.
int64_t CandidatesFor(const SamplerOptions& options, int64_t n_vocab);
// The most ids that Sampler::ChangedIds gives for texts of up to `context` tokens.
int64_t MostChangedIds(const SamplerOptions& options, int64_t context, int64_t n_vocab);

}  // namespace weft
