#include "common/cpu/reference/evaluate_node.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "common/cpu/reference/evaluators.h"

namespace weft {
namespace reference {
namespace {

struct Row {
  Op op;
  Evaluator evaluator;
};

constexpr std::array<Row, kOpCount> kEvaluators = {{
    {Op::kLeaf, nullptr},
    {Op::kView, nullptr},
    {Op::kReshape, nullptr},
    {Op::kPermute, nullptr},
    {Op::kTranspose, nullptr},
    {Op::kCopy, Copy},
    {Op::kConcat, Concat},
    {Op::kRepeat, Repeat},
    {Op::kPad, Pad},
    {Op::kFill, Fill},
    {Op::kDiag, Diag},
    {Op::kTri, Tri},
    {Op::kGetRows, GetRows},
    {Op::kSetRows, SetRows},
    {Op::kAdd, Add},
    {Op::kSub, Sub},
    {Op::kMul, Mul},
    {Op::kDiv, Div},
    {Op::kAddId, AddId},
    {Op::kScale, Scale},
    {Op::kClamp, Clamp},
    {Op::kUnary, Unary},
    {Op::kGlu, Glu},
    {Op::kNorm, Norm},
    {Op::kRmsNorm, RmsNorm},
    {Op::kL2Norm, L2Norm},
    {Op::kSoftMax, SoftMax},
    {Op::kSumRows, SumRows},
    {Op::kMean, Mean},
    {Op::kCumSum, CumSum},
    {Op::kArgMax, ArgMax},
    {Op::kTopK, TopK},
    {Op::kSampleCandidates, SampleCandidates},
    {Op::kMulMat, MulMat},
    {Op::kMulMatId, MulMatId},
    {Op::kSolveTri, SolveTri},
    {Op::kRope, Rope},
    {Op::kKvStore, KvStore},
    {Op::kPagedAttention, PagedAttention},
    {Op::kSsmConv, SsmConv},
    {Op::kGatedDeltaNet, GatedDeltaNet},
    {Op::kReceive, nullptr},
    {Op::kAllReduce, nullptr},
    {Op::kAllGather, nullptr},
}};

constexpr bool RowsMatchEnum() {
  for (int i = 0; i < kOpCount; ++i) {
    if (static_cast<int>(kEvaluators[i].op) != i) return false;
    const bool runs = RunsOnDevice(static_cast<Op>(i));
    if ((kEvaluators[i].evaluator != nullptr) != runs) return false;
  }
  return true;
}
static_assert(RowsMatchEnum(), "every op that devices run has an evaluator, in enumerator order");

}  // namespace

Evaluator EvaluatorOf(Op op) { return kEvaluators[static_cast<size_t>(op)].evaluator; }

}  // namespace reference

absl::Status EvaluateNode(const Graph& graph, NodeId id, absl::Span<uint8_t* const> data) {
  const Node& node = graph.node(id);
  const reference::Evaluator evaluator = reference::EvaluatorOf(node.op);
  if (evaluator == nullptr && !graph.Executes(id)) return absl::OkStatus();
  if (evaluator == nullptr) {
    return absl::UnimplementedError(absl::StrCat(NodeText(graph, id), ": no device computes it"));
  }
  reference::Operands operands = reference::OperandsOf(graph, id);
  for (size_t i = 0; i < node.sources.size(); ++i) {
    operands.sources[i].data = data[static_cast<size_t>(Index(node.sources[i]))];
  }
  operands.result.data = data[static_cast<size_t>(Index(id))];
  absl::Status status = evaluator(operands);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(NodeText(graph, id), ": ", status.message()));
}

}  // namespace weft
