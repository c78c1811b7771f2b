#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

const Extents kShapes[] = {{1, 1, 1, 1}, {7, 2, 1, 1},   {64, 3, 2, 1},   {33, 5, 2, 3},
                           {5, 0, 1, 1}, {512, 9, 1, 1}, {2048, 33, 1, 1}};

template <typename Make>
void Add(const std::string& name, uint64_t seed, Tolerance tolerance, std::vector<OpCase>& cases,
         Make make) {
  for (const Extents& ne : kShapes) {
    CaseBuilder builder(++seed);
    const NodeId x = builder.Normal(ne);
    const NodeId result = make(builder, x);
    cases.push_back(
        std::move(builder).Finish(absl::StrCat(name, ExtentsText(ne)), result, tolerance));
  }
  // Rows that are windows into longer ones, as heads in a fused projection are.
  CaseBuilder builder(++seed);
  const NodeId x = builder.Normal({40, 6, 1, 1});
  const NodeId window = builder.builder().View(x, {24, 3, 2, 1}, {4, 160, 480, 960}, 32);
  const NodeId result = make(builder, window);
  cases.push_back(std::move(builder).Finish(absl::StrCat(name, " view"), result, tolerance));
}

void AddNorms(uint64_t seed, std::vector<OpCase>& cases) {
  for (const Op op : {Op::kNorm, Op::kRmsNorm}) {
    for (const bool weighted : {false, true}) {
      Add(absl::StrCat(AbslView(OpName(op)), weighted ? " weighted" : ""), seed += 50, kRowSums,
          cases, [&](CaseBuilder& builder, NodeId x) {
            const int64_t n = builder.builder().layout(x).ne[0];
            const NodeId weight = weighted ? builder.Normal({n, 1, 1, 1}) : kNoNode;
            return builder.builder().Make(op, NormAttributes{1e-5f}, {x, weight});
          });
    }
  }
  Add("l2_norm", seed += 50, kRowSums, cases, [](CaseBuilder& builder, NodeId x) {
    return builder.builder().Make(Op::kL2Norm, NormAttributes{1e-6f}, {x});
  });
}

void AddTopK(uint64_t seed, std::vector<OpCase>& cases) {
  for (const int32_t k : {1, 4, 8, 128}) {
    for (const bool padded : {false, true}) {
      CaseBuilder builder(++seed);
      const NodeId x = builder.Normal({128, 9, 1, 1});
      const NodeId positions = padded ? builder.Integers({9, 1, 1, 1}, -1, 1) : kNoNode;
      const NodeId result = builder.builder().TopK(x, k, positions);
      cases.push_back(
          std::move(builder).Finish(absl::StrCat("top_k ", k, " padded ", padded), result, kExact));
    }
  }
  // Many equal values: ties go to the lower id.
  CaseBuilder builder(++seed);
  const NodeId x = builder.builder().Copy(builder.Integers({40, 3, 1, 1}, 0, 0), DType::kI32);
  static_cast<void>(x);
  const NodeId flat = builder.builder().Scale(builder.Normal({40, 3, 1, 1}), 0, 1);
  const NodeId result = builder.builder().TopK(flat, 7, kNoNode);
  cases.push_back(std::move(builder).Finish("top_k ties", result, kExact));
}

}  // namespace

std::vector<OpCase> RowCases(uint64_t seed) {
  std::vector<OpCase> cases;
  AddNorms(seed += 500, cases);
  Add("soft_max", seed += 50, kRowSums, cases,
      [](CaseBuilder& builder, NodeId x) { return builder.builder().SoftMax(x, 1.5f); });
  Add("sum_rows", seed += 50, kRowSums, cases,
      [](CaseBuilder& builder, NodeId x) { return builder.builder().SumRows(x); });
  for (const Op op : {Op::kMean, Op::kCumSum, Op::kArgMax}) {
    const Tolerance tolerance = op == Op::kArgMax ? kExact : kRowSums;
    Add(std::string(OpName(op)), seed += 50, tolerance, cases,
        [&](CaseBuilder& builder, NodeId x) { return builder.builder().Make(op, {}, {x}); });
  }
  AddTopK(seed += 50, cases);
  return cases;
}

}  // namespace weft
