// Picks the next token from a row of logits: penalties, truncation, temperature, draw (spec J.1 and
// J.2).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/random.h"
#include "coordinator/sampling/candidate_row.h"

namespace weft {

struct SamplerOptions {
  float temperature = 0.8f;     // <= 0: greedy
  int32_t top_k = 40;           // <= 0: off
  float top_p = 0.95f;          // >= 1: off
  float min_p = 0.05f;          // <= 0: off
  float repeat_penalty = 1.0f;  // 1: off
  float frequency_penalty = 0;  // subtracted per occurrence
  float presence_penalty = 0;   // subtracted once
  int32_t penalty_window = 64;  // last tokens that penalties look at; 0: off, -1: all
  uint64_t seed = 0;
};

// Errors: INVALID_ARGUMENT naming the option and its value.
absl::Status CheckSamplerOptions(const SamplerOptions& options);

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}

  // The next token. One draw from the generator each call, so that streams stay aligned whatever
  // was truncated. Errors: INTERNAL if a logit is not a number or none is finite.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits);

  // What Sample would choose from all logits, or nothing if these do not tell: then nothing has
  // happened, and the caller goes and asks for all logits. `row` is of the whole vocabulary and
  // holds ChangedIds(). Exact for greedy, top-k up to what `row` has, min-p, penalties, and top-p
  // while the candidates hold the mass. Errors: as above.
  absl::StatusOr<std::optional<int32_t>> SampleFrom(const CandidateRow& row);
  // The ids whose logits the next Sample changes, ascending.
  std::vector<int32_t> ChangedIds() const;

  // Tells the penalties about a token of the prompt or a chosen one.
  void Accept(int32_t token);

 private:
  SamplerOptions options_;
  Random random_;
  std::deque<int32_t> recent_;
};

// --- The stages, each a pure function on candidates ---

// logit <= 0 ? logit * repeat : logit / repeat, then minus count * frequency + presence, for each
// distinct token of `recent`.
void ApplyPenalties(const SamplerOptions& options, const std::deque<int32_t>& recent,
                    std::vector<Candidate>& candidates);
// The k largest, in descending order; equal logits by lower id.
void KeepTopK(int32_t k, std::vector<Candidate>& candidates);
// The shortest prefix whose probabilities reach p. Candidates are sorted.
void KeepTopP(float p, std::vector<Candidate>& candidates);
// The least logit that min-p keeps.
float LeastOfMinP(float p, float maximum);
// Logits of at least maximum + ln(p). Candidates are sorted.
void KeepMinP(float p, std::vector<Candidate>& candidates);
// Index of the first candidate at which the cumulative softmax reaches `uniform` in [0, 1).
size_t DrawFromSoftmax(absl::Span<const Candidate> candidates, double uniform);

// Errors: INTERNAL if a logit is not a number or none is finite, which says that the model's data
// is damaged.
absl::Status CheckLogits(absl::Span<const float> logits);

// What CheckLogits says.
absl::Status NotANumber(int64_t token);
absl::Status NothingFinite();

// --- What to ask a step for ---

// Whether penalties do anything.
bool ChangesLogits(const SamplerOptions& options);

// Candidates that nearly always tell for these options: a power of two, at most n_vocab; 0 for a
// vocabulary beyond 2^20 ids, of which steps return all logits.
int64_t CandidatesFor(const SamplerOptions& options, int64_t n_vocab);
// The most ids that ChangedIds gives for texts of up to `context` tokens.
int64_t MostChangedIds(const SamplerOptions& options, int64_t context, int64_t n_vocab);

// Position of the largest value, the first of equal ones. `logits` passed CheckLogits and is not
// empty.
int32_t ArgMax(absl::Span<const float> logits);

}  // namespace weft
