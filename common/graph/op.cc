#include "common/graph/op.h"

#include <array>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/graph/shape_inference/rules.h"

namespace weft {
namespace {

// Position of a struct in OpAttributes.
template <typename T, size_t I = 0>
constexpr int8_t AttributeIndex() {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<I, OpAttributes>>) {
    return static_cast<int8_t>(I);
  } else {
    return AttributeIndex<T, I + 1>();
  }
}

constexpr int8_t kNone = AttributeIndex<NoAttributes>();
constexpr int8_t kNorm = AttributeIndex<NormAttributes>();
constexpr int8_t kAxis = AttributeIndex<AxisAttributes>();
constexpr int8_t kTriangle = AttributeIndex<TriangleAttributes>();

// Columns: op, name, least and most sources, attributes, is_view, in_place, writes_source, shape
// rule, cost.
constexpr std::array<OpInfo, kOpCount> kTable = {{
    {Op::kLeaf, "leaf", 0, 0, AttributeIndex<LeafAttributes>(), false, false, false, infer::Leaf,
     infer::NoCost},
    {Op::kView, "view", 1, 1, AttributeIndex<ViewAttributes>(), true, false, false, infer::View,
     infer::NoCost},
    {Op::kReshape, "reshape", 1, 1, AttributeIndex<ReshapeAttributes>(), true, false, false,
     infer::Reshape, infer::NoCost},
    {Op::kPermute, "permute", 1, 1, AttributeIndex<PermuteAttributes>(), true, false, false,
     infer::Permute, infer::NoCost},
    {Op::kTranspose, "transpose", 1, 1, kNone, true, false, false, infer::Transpose, infer::NoCost},
    {Op::kCopy, "copy", 1, 1, AttributeIndex<CopyAttributes>(), false, false, false, infer::Copy,
     infer::StreamCost},
    {Op::kConcat, "concat", 2, 2, kAxis, false, false, false, infer::Concat, infer::StreamCost},
    {Op::kRepeat, "repeat", 1, 1, AttributeIndex<RepeatAttributes>(), false, false, false,
     infer::Repeat, infer::StreamCost},
    {Op::kPad, "pad", 1, 1, AttributeIndex<PadAttributes>(), false, false, false, infer::Pad,
     infer::StreamCost},
    {Op::kFill, "fill", 0, 0, AttributeIndex<FillAttributes>(), false, false, false, infer::Fill,
     infer::StreamCost},
    {Op::kDiag, "diag", 1, 1, kNone, false, false, false, infer::Diag, infer::StreamCost},
    {Op::kTri, "tri", 1, 1, kTriangle, false, false, false, infer::Tri, infer::StreamCost},
    {Op::kGetRows, "get_rows", 2, 2, AttributeIndex<GetRowsAttributes>(), false, false, false,
     infer::GetRows, infer::MoveCost},
    {Op::kSetRows, "set_rows", 3, 3, kNone, false, false, true, infer::SetRows, infer::MoveCost},
    {Op::kAdd, "add", 2, 2, kNone, false, true, false, infer::Binary, infer::StreamCost},
    {Op::kSub, "sub", 2, 2, kNone, false, true, false, infer::Binary, infer::StreamCost},
    {Op::kMul, "mul", 2, 2, kNone, false, true, false, infer::Binary, infer::StreamCost},
    {Op::kDiv, "div", 2, 2, kNone, false, true, false, infer::Binary, infer::StreamCost},
    {Op::kAddId, "add_id", 3, 3, kNone, false, true, false, infer::AddId, infer::StreamCost},
    {Op::kScale, "scale", 1, 1, AttributeIndex<ScaleAttributes>(), false, true, false, infer::Scale,
     infer::StreamCost},
    {Op::kClamp, "clamp", 1, 1, AttributeIndex<ClampAttributes>(), false, true, false, infer::Clamp,
     infer::StreamCost},
    {Op::kUnary, "unary", 1, 1, AttributeIndex<UnaryAttributes>(), false, true, false, infer::Unary,
     infer::StreamCost},
    {Op::kGlu, "glu", 1, 2, AttributeIndex<GluAttributes>(), false, false, false, infer::Glu,
     infer::StreamCost},
    {Op::kNorm, "norm", 1, 2, kNorm, false, true, false, infer::RowNorm, infer::StreamCost},
    {Op::kRmsNorm, "rms_norm", 1, 2, kNorm, false, true, false, infer::RowNorm, infer::StreamCost},
    {Op::kL2Norm, "l2_norm", 1, 1, kNorm, false, true, false, infer::RowNorm, infer::StreamCost},
    {Op::kSoftMax, "soft_max", 1, 1, AttributeIndex<SoftMaxAttributes>(), false, true, false,
     infer::SoftMax, infer::StreamCost},
    {Op::kSumRows, "sum_rows", 1, 1, kNone, false, false, false, infer::ReduceRows,
     infer::StreamCost},
    {Op::kMean, "mean", 1, 1, kNone, false, false, false, infer::ReduceRows, infer::StreamCost},
    {Op::kCumSum, "cumsum", 1, 1, kNone, false, false, false, infer::Elementwise,
     infer::StreamCost},
    {Op::kArgMax, "argmax", 1, 1, kNone, false, false, false, infer::ArgMax, infer::StreamCost},
    {Op::kTopK, "top_k", 1, 2, AttributeIndex<TopKAttributes>(), false, false, false, infer::TopK,
     infer::StreamCost},
    {Op::kSampleCandidates, "sample_candidates", 1, 2, AttributeIndex<SampleCandidatesAttributes>(),
     false, false, false, infer::SampleCandidates, infer::StreamCost},
    {Op::kMulMat, "mul_mat", 2, 2, kNone, false, false, false, infer::MulMat, infer::MulMatCost},
    {Op::kMulMatId, "mul_mat_id", 3, 3, kNone, false, false, false, infer::MulMatId,
     infer::MulMatIdCost},
    {Op::kSolveTri, "solve_tri", 2, 2, kTriangle, false, false, false, infer::SolveTri,
     infer::StreamCost},
    {Op::kRope, "rope", 2, 3, AttributeIndex<RopeAttributes>(), false, true, false, infer::Rope,
     infer::StreamCost},
    {Op::kKvStore, "kv_store", 3, 3, kNone, false, false, true, infer::KvStore, infer::MoveCost},
    {Op::kPagedAttention, "paged_attention", 5, 8, AttributeIndex<PagedAttentionAttributes>(),
     false, false, false, infer::PagedAttention, infer::AttentionCost},
    {Op::kSsmConv, "ssm_conv", 2, 2, kNone, false, false, false, infer::SsmConv, infer::StreamCost},
    {Op::kGatedDeltaNet, "gated_delta_net", 6, 7, kNone, false, false, false, infer::GatedDeltaNet,
     infer::StreamCost},
    {Op::kReceive, "receive", 0, 0, AttributeIndex<ReceiveAttributes>(), false, false, false,
     infer::Receive, infer::ReceiveCost},
    {Op::kAllReduce, "all_reduce", 1, 1, AttributeIndex<AllReduceAttributes>(), false, true, false,
     infer::AllReduce, infer::StreamCost},
    {Op::kAllGather, "all_gather", 0, 1, AttributeIndex<AllGatherAttributes>(), false, false, false,
     infer::AllGather, infer::ReceiveCost},
}};

constexpr bool RowsMatchEnum() {
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = kTable[i];
    if (static_cast<int>(row.op) != i || row.infer == nullptr || row.cost == nullptr ||
        row.max_sources > kMaxSources) {
      return false;
    }
  }
  return true;
}
static_assert(RowsMatchEnum(), "row i of the op table must be enumerator i and complete");

constexpr std::array<std::string_view, kUnaryKindCount> kUnaryNames = {
    "silu", "gelu",     "gelu_erf", "gelu_quick", "sigmoid", "tanh", "exp", "neg",
    "relu", "softplus", "sqr",      "sqrt",       "log",     "sin",  "cos"};
constexpr std::array<std::string_view, 4> kGluNames = {"swiglu", "geglu", "reglu", "swiglu_oai"};

}  // namespace

const OpInfo& GetOpInfo(Op op) { return kTable[static_cast<size_t>(op)]; }
absl::Span<const OpInfo> AllOps() { return kTable; }
std::string_view UnaryName(UnaryKind kind) { return kUnaryNames[static_cast<size_t>(kind)]; }
std::string_view GluName(GluKind kind) { return kGluNames[static_cast<size_t>(kind)]; }

absl::StatusOr<TensorLayout> InferResult(Op op, const OpAttributes& attributes,
                                         absl::Span<const TensorLayout> sources) {
  const OpInfo& info = GetOpInfo(op);
  const auto count = static_cast<int64_t>(sources.size());
  if (count < info.min_sources || count > info.max_sources) {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(info.name), ": ", count,
                                                   " sources, want ", info.min_sources, " to ",
                                                   info.max_sources));
  }
  if (static_cast<int>(attributes.index()) != info.attributes) {
    return absl::InvalidArgumentError(
        absl::StrCat(AbslView(info.name), ": attributes of another op"));
  }
  absl::StatusOr<TensorLayout> result = info.infer(attributes, sources);
  if (!result.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(AbslView(info.name), ": ", result.status().message()));
  }
  return result;
}

namespace infer {

OpCost NoCost(const OpAttributes&, Sources, const TensorLayout&) { return {}; }

OpCost StreamCost(const OpAttributes&, Sources sources, const TensorLayout& result) {
  OpCost cost;
  cost.flops = ElementCount(result);
  cost.bytes_written = RowCount(result) * RowByteSize(result);
  for (const TensorLayout& source : sources) {
    cost.bytes_read = SaturatingAdd(cost.bytes_read, RowCount(source) * RowByteSize(source));
  }
  return cost;
}

OpCost MoveCost(const OpAttributes&, Sources sources, const TensorLayout& result) {
  // get_rows moves its result, set_rows and kv_store their rows (source 1).
  OpCost cost;
  const bool writes = sources.size() == 3;
  const TensorLayout& moved = writes ? sources[1] : result;
  cost.bytes_written = RowCount(moved) * RowByteSize(moved);
  cost.bytes_read = cost.bytes_written;
  return cost;
}

OpCost ReceiveCost(const OpAttributes&, Sources, const TensorLayout& result) {
  OpCost cost;
  cost.bytes_written = RowCount(result) * RowByteSize(result);
  return cost;
}

}  // namespace infer
}  // namespace weft
