// Picks the next token from a row of logits: changes of logits, truncation, temperature, draw (spec
// J.1 and J.2). The stages are in stages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/random.h"
#include "coordinator/sampling/candidate_list.h"
#include "coordinator/sampling/candidate_row.h"
#include "coordinator/sampling/sampler_options.h"
#include "coordinator/sampling/token_filter.h"

namespace weft {

// Of one sequence. In order: filter, bias, penalties, DRY, top-n-sigma, top-k, typical, top-p,
// min-p, XTC, temperature, draw; with mirostat: filter, bias, temperature, mirostat with its draw.
// A temperature of 0 or less takes the first of what is left.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Of what tokens may come next; null: of all. Outlives the sampler or the next call.
  void SetFilter(TokenFilter* filter) { filter_ = filter; }

  // The next token. One draw from the generator each call, so that streams stay aligned whatever
  // was truncated (XTC has a generator of its own). Errors: INTERNAL if a logit is not a number or
  // none is finite; FAILED_PRECONDITION if filter and bias leave no token; those of the filter.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits);

  // What Sample would choose from all logits, or nothing if these do not tell: then nothing has
  // happened, and the caller goes and asks for all logits. `row` is of the whole vocabulary and
  // holds ChangedIds(). Exact for greedy, top-k up to what `row` has and whatever follows it,
  // min-p, bias, penalties, DRY, and top-p while the candidates hold the mass; with a filter if
  // enough of the allowed tokens are among the candidates. Errors: as above.
  absl::StatusOr<std::optional<int32_t>> SampleFrom(const CandidateRow& row);
  // The ids whose logits the next Sample changes, ascending; beyond MostChangedIds some that DRY
  // changes are missing, and SampleFrom does not tell.
  std::vector<int32_t> ChangedIds() const;

  // Tells the penalties about a token of the prompt or a chosen one.
  void Accept(int32_t token);

 private:
  struct Draws {
    double token = 0;
    double xtc = 0;
  };

  absl::Span<const int32_t> Recent(int32_t window) const;
  // Bias, penalties and DRY. Candidates by ascending id.
  void ChangeLogits(std::vector<Candidate>& candidates) const;
  const std::vector<DryPenalty>& DryPenalties() const;
  // The chain behind the changes; nothing if the list does not tell. Changes no state.
  std::optional<Candidate> Choose(CandidateList& list, const Draws& draws, float& mu) const;
  std::optional<Candidate> ChooseByMirostat(CandidateList& list, double uniform, float& mu) const;
  bool Truncate(CandidateList& list, double xtc_uniform) const;
  // Runs the chain and, if it tells, moves the generators on.
  std::optional<int32_t> Run(CandidateList& list);

  SamplerOptions options_;
  TokenFilter* filter_ = nullptr;
  Random random_;
  Random xtc_random_;
  float mu_;                             // state of mirostat
  std::vector<int32_t> history_;         // last accepted tokens, as many as any stage looks at
  int64_t window_ = 0;                   // how many those are; negative: all
  mutable std::vector<DryPenalty> dry_;  // of history_, if dry_known_
  mutable bool dry_known_ = false;
};

// Errors: INTERNAL if a logit is not a number or none is finite, which says that the model's data
// is damaged.
absl::Status CheckLogits(absl::Span<const float> logits);

// What CheckLogits says.
absl::Status NotANumber(int64_t token);
absl::Status NothingFinite();

// Position of the largest value, the first of equal ones. `logits` passed CheckLogits and is not
// empty.
int32_t ArgMax(absl::Span<const float> logits);

}  // namespace weft
