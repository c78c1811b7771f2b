// The shape rules and costs that the op table (common/graph/op.cc) names, one function per op. Each
// checks its sources and attributes completely and returns the packed (or view) layout of the
// result.
#pragma once

#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/op.h"

namespace weft::infer {

using Sources = absl::Span<const TensorLayout>;
using Result = absl::StatusOr<TensorLayout>;

// --- Shared checks (move.cc) ---
absl::Status Bad(const std::string& why);
// INVALID_ARGUMENT unless source `index` has this type.
absl::Status NeedDType(Sources sources, int index, DType dtype);
// INVALID_ARGUMENT unless source `index` is F32 (I32) with contiguous rows.
absl::Status NeedF32Rows(Sources sources, int index);
absl::Status NeedI32Rows(Sources sources, int index);
// INVALID_ARGUMENT unless every value is finite: a graph with a NaN equals no graph, itself
// included.
absl::Status NeedFinite(std::initializer_list<float> values);
// INVALID_ARGUMENT unless source `index` has exactly these extents.
absl::Status NeedExtents(Sources sources, int index, const Extents& ne);

// --- view.cc ---
Result Leaf(const OpAttributes& attributes, Sources sources);
Result View(const OpAttributes& attributes, Sources sources);
Result Reshape(const OpAttributes& attributes, Sources sources);
Result Permute(const OpAttributes& attributes, Sources sources);
Result Transpose(const OpAttributes& attributes, Sources sources);

// --- move.cc ---
Result Copy(const OpAttributes& attributes, Sources sources);
Result Concat(const OpAttributes& attributes, Sources sources);
Result Repeat(const OpAttributes& attributes, Sources sources);
Result Pad(const OpAttributes& attributes, Sources sources);
Result Fill(const OpAttributes& attributes, Sources sources);
Result Diag(const OpAttributes& attributes, Sources sources);
Result Tri(const OpAttributes& attributes, Sources sources);
Result GetRows(const OpAttributes& attributes, Sources sources);
Result SetRows(const OpAttributes& attributes, Sources sources);
Result Receive(const OpAttributes& attributes, Sources sources);

// --- elementwise.cc ---
Result Binary(const OpAttributes& attributes, Sources sources);
Result AddId(const OpAttributes& attributes, Sources sources);
Result Elementwise(const OpAttributes& attributes, Sources sources);
Result Scale(const OpAttributes& attributes, Sources sources);
Result Clamp(const OpAttributes& attributes, Sources sources);
Result Unary(const OpAttributes& attributes, Sources sources);
Result Glu(const OpAttributes& attributes, Sources sources);

// --- reduce.cc ---
Result RowNorm(const OpAttributes& attributes, Sources sources);
Result SoftMax(const OpAttributes& attributes, Sources sources);
Result ReduceRows(const OpAttributes& attributes, Sources sources);
Result ArgMax(const OpAttributes& attributes, Sources sources);
Result TopK(const OpAttributes& attributes, Sources sources);
Result SampleCandidates(const OpAttributes& attributes, Sources sources);

// --- matmul.cc ---
Result MulMat(const OpAttributes& attributes, Sources sources);
Result MulMatId(const OpAttributes& attributes, Sources sources);
Result SolveTri(const OpAttributes& attributes, Sources sources);
OpCost MulMatCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);
OpCost MulMatIdCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);

// --- attention.cc ---
Result Rope(const OpAttributes& attributes, Sources sources);
Result KvStore(const OpAttributes& attributes, Sources sources);
Result PagedAttention(const OpAttributes& attributes, Sources sources);
Result SsmConv(const OpAttributes& attributes, Sources sources);
Result GatedDeltaNet(const OpAttributes& attributes, Sources sources);
OpCost AttentionCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);

// --- collective.cc ---
Result AllReduce(const OpAttributes& attributes, Sources sources);
Result AllGather(const OpAttributes& attributes, Sources sources);

// Reads all sources once, writes the result once, one operation per element.
OpCost StreamCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);
// Reads as much as it writes (get_rows, set_rows, kv_store).
OpCost MoveCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);
// Writes the result once.
OpCost ReceiveCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);
OpCost NoCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result);

}  // namespace weft::infer
