// The sizes of a step's graph, and what the host fills it with.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/engine/runner_options.h"

namespace weft {

// One token of a batch.
struct BatchToken {
  int32_t token = 0;
  int64_t position = 0;  // in its sequence; follows the position before it
  int32_t sequence = 0;  // slot, below RunnerOptions::sequences
  bool output = false;   // wants logits
};

// `lengths` are those of the sequences so far. Errors: as ModelRunner::Step.
absl::Status CheckBatch(absl::Span<const BatchToken> batch, const RunnerOptions& options,
                        int64_t n_vocab, std::vector<int64_t> lengths);

// The sizes by which graphs differ within a run.
struct StepShape {
  int64_t tokens = 0;
  int64_t outputs = 0;
  int64_t candidates = 0;  // of an output row; 0: all its logits
  int64_t changed = 0;     // ids of an output row that the sampler will change
  bool hidden = false;     // output rows are hidden states; candidates are 0
  friend bool operator==(const StepShape&, const StepShape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StepShape& s) {
    return H::combine(std::move(h), s.tokens, s.outputs, s.candidates, s.changed, s.hidden);
  }

  // Of an output row of so many logits, or states.
  int64_t RowWords(int64_t width) const;
};

// What a step needs; changed[i] is of output row i if there are candidates. Errors:
// INVALID_ARGUMENT where these do not fit the batch or are more than `most_changed` in a row.
absl::StatusOr<StepShape> ShapeOfStep(absl::Span<const BatchToken> batch, int64_t candidates,
                                      int64_t most_changed,
                                      absl::Span<const std::vector<int32_t>> changed);

// The shape that holds this one, of which a run has few: tokens and outputs are powers of two or
// `ubatch`, changed ids 0, 64, 256 and so on.
StepShape BucketShape(const StepShape& shape, int64_t ubatch);

// The inputs of one step, padded to the bucket.
struct StepInputs {
  std::vector<int32_t> tokens, positions, sequences, slots, output_rows, changed;

  explicit StepInputs(const StepShape& bucket);
  // Row `row` of `changed`: at most StepShape::changed ids.
  void SetChanged(int64_t row, absl::Span<const int32_t> ids);
  // By ModelInput: the id of an input is its position here. Borrows.
  std::vector<absl::Span<const uint8_t>> Spans() const;
};

}  // namespace weft
