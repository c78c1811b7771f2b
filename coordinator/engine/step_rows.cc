#include "coordinator/engine/step_rows.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/candidate_layout.h"

namespace weft {
namespace {

// Words of a candidate row over so many ids.
int64_t CandidateWords(const StepShape& bucket, int64_t ids) {
  return CandidateLayout{std::min(bucket.candidates, ids), bucket.changed}.words();
}

absl::StatusOr<std::vector<float>> Words(const StepOutput& output, size_t at, int64_t count) {
  std::vector<float> words(static_cast<size_t>(count));
  const size_t bytes = words.size() * sizeof(float);
  if (at >= output.outputs.size() || output.outputs[at].size() < bytes) {
    return absl::InternalError(absl::StrCat("the step returned no rows in output ", at));
  }
  if (bytes > 0) std::memcpy(words.data(), output.outputs[at].data(), bytes);
  return words;
}

// Logits whose parts several ranks returned.
absl::StatusOr<StepRows> JoinLogits(int64_t n_vocab, int64_t rows, const RankOutput& from,
                                    const StepOutput& output) {
  StepRows whole{0, n_vocab, std::vector<float>(static_cast<size_t>(rows * n_vocab))};
  for (size_t r = 0; r < from.parts.size(); ++r) {
    const IndexRange ids = from.state.segments[0].ranks[r];
    if (from.parts[r] < 0) continue;
    ASSIGN_OR_RETURN(const std::vector<float> part,
                     Words(output, static_cast<size_t>(from.parts[r]), rows * ids.size()));
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(part.begin() + row * ids.size(), ids.size(),
                  whole.words.begin() + row * n_vocab + ids.begin);
    }
  }
  return whole;
}

absl::StatusOr<std::vector<StepRows>> CandidateParts(const StepShape& bucket, int64_t rows,
                                                     const RankOutput& from,
                                                     const StepOutput& output) {
  std::vector<StepRows> parts;
  for (size_t r = 0; r < from.parts.size(); ++r) {
    const IndexRange ids = from.state.segments[0].ranks[r];
    if (from.parts[r] < 0) continue;
    StepRows part{ids.begin, ids.size(), {}};
    ASSIGN_OR_RETURN(part.words, Words(output, static_cast<size_t>(from.parts[r]),
                                       rows * CandidateWords(bucket, part.ids)));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::vector<StepRows>> TakeStepRows(const StepShape& bucket, int64_t width,
                                                   int64_t rows,
                                                   absl::Span<const RankOutput> outputs,
                                                   const StepOutput& output) {
  std::vector<StepRows> parts;
  if (rows == 0) return parts;
  const bool whole = outputs.empty() || outputs[0].state.mirrored();
  if (whole) {
    StepRows& part = parts.emplace_back(StepRows{0, width, {}});
    const size_t at = outputs.empty() ? 0 : static_cast<size_t>(outputs[0].parts[0]);
    ASSIGN_OR_RETURN(part.words, Words(output, at, rows * bucket.RowWords(width)));
    return parts;
  }
  if (outputs[0].state.segments.size() != 1) {
    return absl::InternalError("rows of a vocabulary in more than one segment");
  }
  if (outputs[0].state.kind == SplitKind::kCandidates) {
    return CandidateParts(bucket, rows, outputs[0], output);
  }
  ASSIGN_OR_RETURN(StepRows logits, JoinLogits(width, rows, outputs[0], output));
  parts.push_back(std::move(logits));
  return parts;
}

absl::StatusOr<std::vector<CandidateRow>> ReadCandidateRows(
    const StepShape& bucket, absl::Span<const std::vector<int32_t>> changed,
    absl::Span<const StepRows> parts) {
  std::vector<CandidateRow> rows;
  for (size_t i = 0; i < changed.size(); ++i) {
    std::vector<CandidateRow> row_parts;
    for (const StepRows& part : parts) {
      CandidateRequest request;
      request.k = std::min(bucket.candidates, part.ids);
      request.padded_changed = bucket.changed;
      request.first_id = part.first_id;
      request.ids = part.ids;
      request.changed = changed[i];
      const auto width = static_cast<size_t>(CandidateWords(bucket, part.ids));
      ASSIGN_OR_RETURN(
          row_parts.emplace_back(),
          ReadCandidateRow(request, absl::MakeConstSpan(part.words).subspan(i * width, width)));
    }
    rows.push_back(row_parts.size() == 1 ? std::move(row_parts[0])
                                         : MergeCandidateRows(row_parts, bucket.candidates));
  }
  return rows;
}

}  // namespace weft
