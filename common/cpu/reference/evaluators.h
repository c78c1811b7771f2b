// One function per op that executes, by group as the files are.
#pragma once

#include "absl/status/status.h"
#include "common/cpu/reference/host_tensor.h"
#include "common/graph/op.h"

namespace weft::reference {

using Evaluator = absl::Status (*)(const Operands& operands);

// The function of an op; null for leafs and views, which do not execute.
Evaluator EvaluatorOf(Op op);

// --- move.cc ---
absl::Status Copy(const Operands& operands);
absl::Status Concat(const Operands& operands);
absl::Status Repeat(const Operands& operands);
absl::Status Pad(const Operands& operands);
absl::Status Fill(const Operands& operands);
absl::Status Diag(const Operands& operands);
absl::Status Tri(const Operands& operands);
absl::Status GetRows(const Operands& operands);
absl::Status SetRows(const Operands& operands);

// --- elementwise.cc ---
absl::Status Add(const Operands& operands);
absl::Status Sub(const Operands& operands);
absl::Status Mul(const Operands& operands);
absl::Status Div(const Operands& operands);
absl::Status AddId(const Operands& operands);
absl::Status Scale(const Operands& operands);
absl::Status Clamp(const Operands& operands);
absl::Status Unary(const Operands& operands);
absl::Status Glu(const Operands& operands);

// --- reduce.cc ---
absl::Status Norm(const Operands& operands);
absl::Status RmsNorm(const Operands& operands);
absl::Status L2Norm(const Operands& operands);
absl::Status SoftMax(const Operands& operands);
absl::Status SumRows(const Operands& operands);
absl::Status Mean(const Operands& operands);
absl::Status CumSum(const Operands& operands);
absl::Status ArgMax(const Operands& operands);
absl::Status TopK(const Operands& operands);

// --- sample_candidates.cc ---
absl::Status SampleCandidates(const Operands& operands);

// --- matmul.cc ---
absl::Status MulMat(const Operands& operands);
absl::Status MulMatId(const Operands& operands);
absl::Status SolveTri(const Operands& operands);

// --- attention.cc ---
absl::Status Rope(const Operands& operands);
absl::Status KvStore(const Operands& operands);
absl::Status PagedAttention(const Operands& operands);

// --- recurrent.cc ---
absl::Status SsmConv(const Operands& operands);
absl::Status GatedDeltaNet(const Operands& operands);

}  // namespace weft::reference
