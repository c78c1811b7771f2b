// What a step hands back: rows of logits or of candidates, whole or in parts of the vocabulary that
// several ranks hold.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/program/program_host.h"
#include "coordinator/engine/step_inputs.h"
#include "coordinator/meta/rank_graph.h"
#include "coordinator/sampling/candidate_row.h"

namespace weft {

// Rows one behind the other, of ids [first_id, first_id + ids).
struct StepRows {
  int64_t first_id = 0;
  int64_t ids = 0;
  std::vector<float> words;
};

// The first `rows` rows of a step of `bucket`; logits put together to one part, candidates by rank
// in the order of their ids. `width`: of a row of logits or states. `outputs` says how; empty: the
// step has one output. Errors: INTERNAL where the step returned too little.
absl::StatusOr<std::vector<StepRows>> TakeStepRows(const StepShape& bucket, int64_t width,
                                                   int64_t rows,
                                                   absl::Span<const RankOutput> outputs,
                                                   const StepOutput& output);

// The rows of a step that was asked for candidates, parts merged; changed[i] is what row i was
// asked with. Errors: as ReadCandidateRow.
absl::StatusOr<std::vector<CandidateRow>> ReadCandidateRows(
    const StepShape& bucket, absl::Span<const std::vector<int32_t>> changed,
    absl::Span<const StepRows> parts);

}  // namespace weft
