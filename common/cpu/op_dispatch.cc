#include "common/cpu/op_dispatch.h"

#include <array>

#include "common/cpu/ops/ops.h"

namespace weft::cpu {
namespace {

// Columns: op, run, workspace, supports.
constexpr std::array<OpRow, kOpCount> kRows = {{
    {Op::kLeaf, nullptr, nullptr, nullptr},
    {Op::kView, nullptr, nullptr, nullptr},
    {Op::kReshape, nullptr, nullptr, nullptr},
    {Op::kPermute, nullptr, nullptr, nullptr},
    {Op::kTranspose, nullptr, nullptr, nullptr},
    {Op::kCopy, RunCopy, CopyWorkspace, nullptr},
    {Op::kConcat, RunConcat, nullptr, nullptr},
    {Op::kRepeat, RunRepeat, nullptr, nullptr},
    {Op::kPad, RunReference, nullptr, nullptr},
    {Op::kFill, RunFill, nullptr, nullptr},
    {Op::kDiag, RunReference, nullptr, nullptr},
    {Op::kTri, RunReference, nullptr, nullptr},
    {Op::kGetRows, RunGetRows, nullptr, nullptr},
    {Op::kSetRows, RunSetRows, nullptr, nullptr},
    {Op::kAdd, RunAdd, nullptr, nullptr},
    {Op::kSub, RunSub, nullptr, nullptr},
    {Op::kMul, RunMul, nullptr, nullptr},
    {Op::kDiv, RunDiv, nullptr, nullptr},
    {Op::kAddId, RunAddId, nullptr, nullptr},
    {Op::kScale, RunScale, nullptr, nullptr},
    {Op::kClamp, RunClamp, nullptr, nullptr},
    {Op::kUnary, RunUnary, nullptr, nullptr},
    {Op::kGlu, RunGlu, nullptr, nullptr},
    {Op::kNorm, RunNorm, nullptr, nullptr},
    {Op::kRmsNorm, RunRmsNorm, nullptr, nullptr},
    {Op::kL2Norm, RunL2Norm, nullptr, nullptr},
    {Op::kSoftMax, RunSoftMax, nullptr, nullptr},
    {Op::kSumRows, RunSumRows, nullptr, nullptr},
    {Op::kMean, RunMean, nullptr, nullptr},
    {Op::kCumSum, RunReference, nullptr, nullptr},
    {Op::kArgMax, RunArgMax, nullptr, nullptr},
    {Op::kTopK, RunTopK, nullptr, nullptr},
    {Op::kSampleCandidates, RunSampleCandidates, SampleCandidatesWorkspace, nullptr},
    {Op::kMulMat, RunMulMat, MulMatWorkspace, nullptr},
    {Op::kMulMatId, RunMulMatId, MulMatIdWorkspace, nullptr},
    {Op::kSolveTri, RunReference, nullptr, nullptr},
    {Op::kRope, RunRope, RopeWorkspace, nullptr},
    {Op::kKvStore, RunKvStore, nullptr, KvStoreSupport},
    {Op::kPagedAttention, RunPagedAttention, PagedAttentionWorkspace, PagedAttentionSupport},
    {Op::kSsmConv, RunReference, nullptr, nullptr},
    {Op::kGatedDeltaNet, RunReference, nullptr, nullptr},
    {Op::kReceive, nullptr, nullptr, nullptr},
    {Op::kAllReduce, nullptr, nullptr, nullptr},
    {Op::kAllGather, nullptr, nullptr, nullptr},
}};

constexpr bool RowsMatchEnum() {
  for (int i = 0; i < kOpCount; ++i) {
    const bool runs = RunsOnDevice(static_cast<Op>(i));
    if (static_cast<int>(kRows[i].op) != i || (kRows[i].run != nullptr) != runs) return false;
  }
  return true;
}
static_assert(RowsMatchEnum(), "every op that devices run has a function, in enumerator order");

}  // namespace

const OpRow* OpRowOf(Op op) {
  const OpRow& row = kRows[static_cast<size_t>(op)];
  return row.run == nullptr ? nullptr : &row;
}

}  // namespace weft::cpu
