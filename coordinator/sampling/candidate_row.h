// A row of logits as a step returns it to a sampler: the best ids, the ids that the sampler is
// going to change, and a summary of the rest (decision 19; packed as
// common/graph/candidate_layout.h says).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// A token that is still in the running.
struct Candidate {
  int32_t id = 0;
  float logit = 0;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// The order of candidates: by logit descending, equal ones by ascending id.
inline bool Before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Ids [first_id, first_id + ids) of the vocabulary: all of it, or the part of one device.
struct CandidateRow {
  int64_t first_id = 0;
  int64_t ids = 0;
  std::vector<Candidate> best;     // of the ids that will not change, in order
  std::vector<Candidate> changed;  // raw logits of those that will, by ascending id
  // The ids that are in neither list: how many, their largest logit, and the sum of exp(logit -
  // rest_max) over them to four digits, 0 if rest_max is infinite. None of them is before any of
  // `best`.
  int64_t rest_count = 0;
  float rest_max = -std::numeric_limits<float>::infinity();
  float rest_sum = 0;
  // Logits that are not numbers, and the lowest id of one. If there are any, nothing else is known.
  int64_t nan_count = 0;
  int32_t first_nan = -1;
  friend bool operator==(const CandidateRow&, const CandidateRow&) = default;
};

// What the step was asked for.
struct CandidateRequest {
  int64_t k = 0;                      // most candidates
  int64_t padded_changed = 0;         // changed ids that a row has room for
  int64_t first_id = 0;               // as CandidateRow
  int64_t ids = 0;                    //
  absl::Span<const int32_t> changed;  // of this row, at most padded_changed; may repeat, and be of
                                      // other parts of the vocabulary
};

// Reads a packed row as if an enemy wrote it. Errors: INTERNAL naming the word at fault.
absl::StatusOr<CandidateRow> ReadCandidateRow(const CandidateRequest& request,
                                              absl::Span<const float> words);

// The row of the whole from the rows of its parts: at least one, each asked for the same k and the
// same changed ids, of consecutive ids in order. `best` is what one device would have found.
CandidateRow MergeCandidateRows(absl::Span<const CandidateRow> parts, int64_t k);

}  // namespace weft
