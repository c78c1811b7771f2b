// One function per op (or family of ops) of the CPU device; the signatures are those of OpRow.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/cpu/launch.h"
#include "common/cpu/reference/host_tensor.h"

namespace weft::cpu {

using reference::HostTensor;
using reference::Operands;

// --- move.cc ---
absl::Status RunCopy(const Operands& operands, Launch& launch);
int64_t CopyWorkspace(const Operands& operands, const KernelTable& kernels, int threads);
absl::Status RunConcat(const Operands& operands, Launch& launch);
absl::Status RunRepeat(const Operands& operands, Launch& launch);
absl::Status RunFill(const Operands& operands, Launch& launch);

// --- rows.cc ---
absl::Status RunGetRows(const Operands& operands, Launch& launch);
absl::Status RunSetRows(const Operands& operands, Launch& launch);
absl::Status RunKvStore(const Operands& operands, Launch& launch);
absl::Status KvStoreSupport(const Operands& operands, const KernelTable& kernels);

// --- binary.cc ---
absl::Status RunAdd(const Operands& operands, Launch& launch);
absl::Status RunSub(const Operands& operands, Launch& launch);
absl::Status RunMul(const Operands& operands, Launch& launch);
absl::Status RunDiv(const Operands& operands, Launch& launch);
absl::Status RunAddId(const Operands& operands, Launch& launch);

// --- unary.cc ---
absl::Status RunScale(const Operands& operands, Launch& launch);
absl::Status RunClamp(const Operands& operands, Launch& launch);
absl::Status RunUnary(const Operands& operands, Launch& launch);
absl::Status RunGlu(const Operands& operands, Launch& launch);

// --- reduce.cc ---
absl::Status RunNorm(const Operands& operands, Launch& launch);
absl::Status RunRmsNorm(const Operands& operands, Launch& launch);
absl::Status RunL2Norm(const Operands& operands, Launch& launch);
absl::Status RunSoftMax(const Operands& operands, Launch& launch);
absl::Status RunSumRows(const Operands& operands, Launch& launch);
absl::Status RunMean(const Operands& operands, Launch& launch);
absl::Status RunArgMax(const Operands& operands, Launch& launch);
absl::Status RunTopK(const Operands& operands, Launch& launch);

// --- sample_candidates.cc ---
absl::Status RunSampleCandidates(const Operands& operands, Launch& launch);
int64_t SampleCandidatesWorkspace(const Operands& operands, const KernelTable& kernels,
                                  int threads);

// --- mul_mat.cc ---
absl::Status RunMulMat(const Operands& operands, Launch& launch);
int64_t MulMatWorkspace(const Operands& operands, const KernelTable& kernels, int threads);

// --- mul_mat_id.cc ---
absl::Status RunMulMatId(const Operands& operands, Launch& launch);
int64_t MulMatIdWorkspace(const Operands& operands, const KernelTable& kernels, int threads);

// --- rope.cc ---
absl::Status RunRope(const Operands& operands, Launch& launch);
int64_t RopeWorkspace(const Operands& operands, const KernelTable& kernels, int threads);

// --- paged_attention.cc ---
absl::Status RunPagedAttention(const Operands& operands, Launch& launch);
int64_t PagedAttentionWorkspace(const Operands& operands, const KernelTable& kernels, int threads);
absl::Status PagedAttentionSupport(const Operands& operands, const KernelTable& kernels);

// --- reference.cc ---
// Ops that are rare or small in the models there are: the oracle, on one thread.
absl::Status RunReference(const Operands& operands, Launch& launch);

}  // namespace weft::cpu
