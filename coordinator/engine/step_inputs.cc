#include "coordinator/engine/step_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/candidate_layout.h"

namespace weft {
namespace {

constexpr int64_t kFewestChanged = 64;

// The smallest power of two that holds `count`, or `limit` if that is smaller.
int64_t BucketSize(int64_t count, int64_t limit) {
  int64_t size = 1;
  while (size < count) size *= 2;
  return std::min(size, limit);
}

absl::Span<const uint8_t> Bytes(const std::vector<int32_t>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(int32_t)};
}

}  // namespace

absl::Status CheckBatch(absl::Span<const BatchToken> batch, const RunnerOptions& options,
                        int64_t n_vocab, std::vector<int64_t> lengths) {
  if (batch.empty() || static_cast<int64_t>(batch.size()) > options.ubatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch of ", batch.size(), " tokens, want 1 to ", options.ubatch));
  }
  for (const BatchToken& token : batch) {
    if (token.token < 0 || token.token >= n_vocab) {
      return absl::OutOfRangeError(
          absl::StrCat("token id ", token.token, " is outside the vocabulary of ", n_vocab));
    }
    if (token.sequence < 0 || token.sequence >= options.sequences) {
      return absl::OutOfRangeError(absl::StrCat("sequence ", token.sequence));
    }
    if (token.position != lengths[token.sequence]) {
      return absl::InvalidArgumentError(absl::StrCat("position ", token.position, " of sequence ",
                                                     token.sequence, " does not follow ",
                                                     lengths[token.sequence], " tokens"));
    }
    if (++lengths[token.sequence] > options.context) {
      return absl::OutOfRangeError(
          absl::StrCat("the context of ", options.context, " tokens is full; raise -c"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StepShape> ShapeOfStep(absl::Span<const BatchToken> batch, int64_t candidates,
                                      int64_t most_changed,
                                      absl::Span<const std::vector<int32_t>> changed) {
  StepShape shape;
  shape.tokens = static_cast<int64_t>(batch.size());
  for (const BatchToken& token : batch) shape.outputs += token.output ? 1 : 0;
  if (candidates == 0) return shape;
  shape.candidates = candidates;
  if (static_cast<int64_t>(changed.size()) != shape.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("changed ids of ", changed.size(), " rows, the step has ", shape.outputs));
  }
  for (const std::vector<int32_t>& ids : changed) {
    shape.changed = std::max(shape.changed, static_cast<int64_t>(ids.size()));
  }
  if (shape.changed > most_changed) {
    return absl::InvalidArgumentError(
        absl::StrCat(shape.changed, " changed ids, the most are ", most_changed));
  }
  return shape;
}

int64_t StepShape::RowWords(int64_t width) const {
  return candidates == 0 ? width : CandidateLayout{candidates, changed}.words();
}

StepShape BucketShape(const StepShape& shape, int64_t ubatch) {
  StepShape bucket;
  bucket.tokens = BucketSize(shape.tokens, ubatch);
  if (shape.outputs == 0) return bucket;
  bucket.outputs = BucketSize(shape.outputs, bucket.tokens);
  bucket.candidates = shape.candidates;
  bucket.hidden = shape.hidden;
  if (shape.candidates == 0 || shape.changed == 0) return bucket;
  bucket.changed = kFewestChanged;
  while (bucket.changed < shape.changed) bucket.changed *= 4;
  return bucket;
}

StepInputs::StepInputs(const StepShape& bucket)
    : tokens(bucket.tokens, 0),
      positions(bucket.tokens, -1),
      sequences(bucket.tokens, 0),
      slots(bucket.tokens, 0),
      output_rows(bucket.outputs, -1),
      changed(bucket.outputs * bucket.changed, -1) {}

void StepInputs::SetChanged(int64_t row, absl::Span<const int32_t> ids) {
  const auto width = static_cast<int64_t>(changed.size() / output_rows.size());
  std::copy(ids.begin(), ids.end(), changed.begin() + row * width);
}

std::vector<absl::Span<const uint8_t>> StepInputs::Spans() const {
  std::vector<absl::Span<const uint8_t>> spans = {Bytes(tokens), Bytes(positions), Bytes(sequences),
                                                  Bytes(slots)};
  if (!output_rows.empty()) spans.push_back(Bytes(output_rows));
  if (!changed.empty()) spans.push_back(Bytes(changed));
  return spans;
}

}  // namespace weft
