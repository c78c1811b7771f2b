#include "coordinator/meta/split_rules.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/meta/rule_forms.h"

namespace weft {
namespace {

using RuleForm = split::Answer (*)(const SplitQuestion&);
using LocalForm = OpAttributes (*)(const SplitQuestion&, const SplitAnswer&, split::Local, int32_t);

struct Row {
  Op op;
  RuleForm rule;    // asked when some source is not mirrored; null: never legal
  LocalForm local;  // null: the whole's attributes
  std::string_view text;
};

// S1: cut along dimension 1. P: partial. M: mirrored.
constexpr std::array<Row, kOpCount> kTable = {{
    {Op::kLeaf, split::MirroredOnly, nullptr, "as its memory is laid out"},
    {Op::kView, split::View, split::LocalView, "any; whole segments of a cut"},
    {Op::kReshape, split::Reshape, split::LocalReshape, "any; the parts must be a dimension"},
    {Op::kPermute, split::Permute, nullptr, "any"},
    {Op::kTranspose, split::Transpose, nullptr, "any"},
    {Op::kCopy, split::Copy, nullptr, "cut; P from F32 to F32"},
    {Op::kConcat, split::Concat, nullptr, "both cut alike along another axis; P P"},
    {Op::kRepeat, split::Repeat, split::LocalRepeat, "cut along what is not repeated; P"},
    {Op::kPad, split::Pad, nullptr, "cut along what does not grow; P"},
    {Op::kFill, split::MirroredOnly, nullptr, "M"},
    {Op::kDiag, split::MirroredOnly, nullptr, "M"},
    {Op::kTri, split::MirroredOnly, nullptr, "M"},
    {Op::kGetRows, split::GetRows, split::LocalGetRows, "table S0 -> S0, S1 -> P, P -> P"},
    {Op::kSetRows, split::SetRows, nullptr, "rows and destination S0 alike"},
    {Op::kAdd, split::Sum, nullptr, "cut alike or M; P P"},
    {Op::kSub, split::Sum, nullptr, "cut alike or M; P P"},
    {Op::kMul, split::Multiply, nullptr, "cut alike or M; P M, M P"},
    {Op::kDiv, split::Multiply, nullptr, "cut alike or M; P M"},
    {Op::kAddId, split::AddId, nullptr, "x and bias S0 alike; P with bias M on the first rank"},
    {Op::kScale, split::Scale, nullptr, "cut; P without bias"},
    {Op::kClamp, split::Elementwise, nullptr, "cut"},
    {Op::kUnary, split::Unary, nullptr, "cut; neg also P"},
    {Op::kGlu, split::Glu, nullptr, "both halves cut alike"},
    {Op::kNorm, split::RowOp, nullptr, "cut, not along rows"},
    {Op::kRmsNorm, split::RowOp, nullptr, "cut, not along rows"},
    {Op::kL2Norm, split::RowOp, nullptr, "cut, not along rows"},
    {Op::kSoftMax, split::RowOp, nullptr, "cut, not along rows"},
    {Op::kSumRows, split::LinearRowOp, nullptr, "cut; S0 -> P; P"},
    {Op::kMean, split::LinearRowOp, nullptr, "cut, not along rows; P"},
    {Op::kCumSum, split::LinearRowOp, nullptr, "cut, not along rows; P"},
    {Op::kArgMax, split::RowOp, nullptr, "cut, not along rows"},
    {Op::kTopK, split::TopK, nullptr, "cut along batches"},
    {Op::kSampleCandidates, split::SampleCandidates, split::LocalCandidates,
     "S0 -> candidates of each part"},
    {Op::kMulMat, split::MulMat, nullptr, "w S1 -> S0; w S0 x S0 -> P; x S1, x P; batches alike"},
    {Op::kMulMatId, split::MulMatId, nullptr, "w S1 -> S0; w S0 x S0 -> P; x P"},
    {Op::kSolveTri, split::SolveTri, nullptr, "batches alike; b P"},
    {Op::kRope, split::Rope, nullptr, "S1"},
    {Op::kKvStore, split::KvStore, nullptr, "pages S2 with rows S1"},
    {Op::kPagedAttention, split::PagedAttention, split::LocalAttention,
     "queries S1 with pages S2 or M -> S1"},
    {Op::kSsmConv, split::SsmConv, nullptr, "x and kernel S1 -> S0"},
    {Op::kGatedDeltaNet, split::GatedDeltaNet, nullptr, "all by heads -> S1"},
    {Op::kReceive, nullptr, nullptr, "never: a command performs it"},
    {Op::kAllReduce, nullptr, nullptr, "never: what rules lead to"},
    {Op::kAllGather, nullptr, nullptr, "never: what rules lead to"},
}};

constexpr bool RowsMatchEnum() {
  for (int i = 0; i < kOpCount; ++i) {
    if (static_cast<int>(kTable[i].op) != i) return false;
  }
  return true;
}
static_assert(RowsMatchEnum(), "row i of the table of split rules must be enumerator i");

const Row& RowOf(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace

absl::StatusOr<SplitAnswer> ApplySplitRule(const SplitQuestion& question) {
  const Row& row = RowOf(question.op);
  if (row.rule == nullptr) return split::Cannot("a command performs it");
  const bool mirrored = std::all_of(question.states.begin(), question.states.end(),
                                    [](const SplitState& state) { return state.mirrored(); });
  if (mirrored) return split::AsAsked(question, SplitState::Mirrored());
  for (const SplitState& state : question.states) {
    if (state.kind == SplitKind::kCandidates)
      return split::Cannot("only the host reads candidates");
  }
  return row.rule(question);
}

OpAttributes LocalAttributes(const SplitQuestion& question, const SplitAnswer& answer,
                             absl::Span<const TensorLayout> local, int32_t rank) {
  const LocalForm form = RowOf(question.op).local;
  return form == nullptr ? *question.attributes : form(question, answer, local, rank);
}

std::string_view SplitRuleText(Op op) { return RowOf(op).text; }

}  // namespace weft
