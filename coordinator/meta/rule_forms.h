// The rules of single ops, for the table in split_rules.cc.
#pragma once

#include <string_view>

#include "coordinator/meta/split_rules.h"

namespace weft::split {

using Answer = absl::StatusOr<SplitAnswer>;

// UNIMPLEMENTED "why".
absl::Status Cannot(std::string_view why);
// That result, the sources as they are.
SplitAnswer AsAsked(const SplitQuestion& q, SplitState result);
// All sources but those listed in `except` are mirrored?
bool OthersMirrored(const SplitQuestion& q, absl::Span<const int> except);
// Makes source `i` lie as `wanted`: it does already, or is mirrored and can be cut. False if not.
bool Want(const SplitQuestion& q, SplitAnswer& answer, int i, const SplitState& wanted);

Answer MirroredOnly(const SplitQuestion& q);
Answer View(const SplitQuestion& q);
Answer Reshape(const SplitQuestion& q);
Answer Permute(const SplitQuestion& q);
Answer Transpose(const SplitQuestion& q);
Answer Copy(const SplitQuestion& q);
Answer Concat(const SplitQuestion& q);
Answer Repeat(const SplitQuestion& q);
Answer Pad(const SplitQuestion& q);
Answer GetRows(const SplitQuestion& q);
Answer SetRows(const SplitQuestion& q);
Answer Sum(const SplitQuestion& q);       // add, sub
Answer Multiply(const SplitQuestion& q);  // mul, div
Answer AddId(const SplitQuestion& q);
Answer Scale(const SplitQuestion& q);
Answer Elementwise(const SplitQuestion& q);
Answer Unary(const SplitQuestion& q);
Answer Glu(const SplitQuestion& q);
Answer RowOp(const SplitQuestion& q);        // norms, soft_max, argmax
Answer LinearRowOp(const SplitQuestion& q);  // sum_rows, mean, cumsum
Answer TopK(const SplitQuestion& q);
Answer SampleCandidates(const SplitQuestion& q);
Answer MulMat(const SplitQuestion& q);
Answer MulMatId(const SplitQuestion& q);
Answer SolveTri(const SplitQuestion& q);
Answer Rope(const SplitQuestion& q);
Answer KvStore(const SplitQuestion& q);
Answer PagedAttention(const SplitQuestion& q);
Answer SsmConv(const SplitQuestion& q);
Answer GatedDeltaNet(const SplitQuestion& q);

// Attributes per rank, where they differ from the whole's.
using Local = absl::Span<const TensorLayout>;
OpAttributes LocalView(const SplitQuestion& q, const SplitAnswer& a, Local local, int32_t rank);
OpAttributes LocalReshape(const SplitQuestion& q, const SplitAnswer& a, Local local, int32_t rank);
OpAttributes LocalRepeat(const SplitQuestion& q, const SplitAnswer& a, Local local, int32_t rank);
OpAttributes LocalGetRows(const SplitQuestion& q, const SplitAnswer& a, Local local, int32_t rank);
OpAttributes LocalCandidates(const SplitQuestion& q, const SplitAnswer& a, Local local,
                             int32_t rank);
OpAttributes LocalAttention(const SplitQuestion& q, const SplitAnswer& a, Local local,
                            int32_t rank);

}  // namespace weft::split
