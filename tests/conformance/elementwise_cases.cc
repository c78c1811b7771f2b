#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

const Extents kShapes[] = {{1, 1, 1, 1}, {7, 1, 1, 1},  {64, 3, 1, 1},   {33, 5, 2, 3},
                           {0, 4, 1, 1}, {16, 0, 2, 1}, {1000, 40, 1, 1}};

// x seen with its second and third dimensions exchanged: rows stay whole, strides do not.
NodeId Permuted(CaseBuilder& builder, const Extents& ne) {
  const NodeId x = builder.Normal({ne[0], ne[2], ne[1], ne[3]});
  return builder.builder().Permute(x, {0, 2, 1, 3});
}

void AddBinary(Op op, uint64_t seed, std::vector<OpCase>& cases) {
  struct Shapes {
    Extents a;
    Extents b;
  };
  std::vector<Shapes> all = {{{32, 6, 1, 1}, {32, 1, 1, 1}}, {{12, 4, 3, 2}, {3, 2, 1, 2}},
                             {{8, 2, 6, 4}, {4, 1, 3, 2}},   {{70, 5, 1, 1}, {1, 5, 1, 1}},
                             {{70, 5, 1, 1}, {1, 1, 1, 1}},  {{999, 50, 1, 1}, {999, 1, 1, 1}}};
  for (const Extents& ne : kShapes) all.push_back({ne, ne});
  for (const auto& [a, b] : all) {
    CaseBuilder builder(++seed);
    const NodeId x = builder.Normal(a);
    const NodeId y = builder.Uniform(b, 0.5f, 2);
    const NodeId result = builder.builder().Make(op, {}, {x, y});
    cases.push_back(std::move(builder).Finish(
        absl::StrCat(AbslView(OpName(op)), ExtentsText(a), ExtentsText(b)), result, kExact));
  }
  CaseBuilder builder(++seed);
  const NodeId x = Permuted(builder, {9, 4, 5, 1});
  const NodeId y = builder.Uniform({9, 4, 1, 1}, 0.5f, 2);
  const NodeId result = builder.builder().Make(op, {}, {x, y});
  cases.push_back(
      std::move(builder).Finish(absl::StrCat(AbslView(OpName(op)), " permuted"), result, kExact));
}

void AddId(uint64_t seed, std::vector<OpCase>& cases) {
  for (const Extents& ne : {Extents{1, 1, 1, 1}, Extents{37, 2, 9, 1}, Extents{8, 3, 0, 1}}) {
    CaseBuilder builder(++seed);
    const NodeId x = builder.Normal(ne);
    const NodeId bias = builder.Normal({ne[0], 5, 1, 1});
    const NodeId ids = builder.Integers({ne[1], ne[2], 1, 1}, -1, 4);
    const NodeId result = builder.builder().AddId(x, bias, ids);
    cases.push_back(
        std::move(builder).Finish(absl::StrCat("add_id", ExtentsText(ne)), result, kExact));
  }
}

// Functions of one tensor over all shapes and a permuted source.
template <typename Make>
void AddUnary(const std::string& name, uint64_t seed, float low, float high, Tolerance tolerance,
              std::vector<OpCase>& cases, Make make) {
  for (const Extents& ne : kShapes) {
    CaseBuilder builder(++seed);
    const NodeId result = make(builder.builder(), builder.Uniform(ne, low, high));
    cases.push_back(
        std::move(builder).Finish(absl::StrCat(name, ExtentsText(ne)), result, tolerance));
  }
  CaseBuilder builder(++seed);
  const NodeId x = builder.Uniform({9, 3, 4, 1}, low, high);
  const NodeId result = make(builder.builder(), builder.builder().Permute(x, {0, 2, 1, 3}));
  cases.push_back(std::move(builder).Finish(absl::StrCat(name, " permuted"), result, tolerance));
}

void AddGlu(uint64_t seed, std::vector<OpCase>& cases) {
  for (const GluKind kind :
       {GluKind::kSwiglu, GluKind::kGeglu, GluKind::kReglu, GluKind::kSwigluOai}) {
    for (const Extents& ne : kShapes) {
      CaseBuilder builder(++seed);
      const NodeId gate = builder.Uniform(ne, -9, 9);
      const NodeId up = builder.Uniform(ne, -9, 9);
      const NodeId result = builder.builder().Glu(gate, up, {kind});
      cases.push_back(std::move(builder).Finish(
          absl::StrCat(AbslView(GluName(kind)), ExtentsText(ne)), result, kFewRoundings));
    }
    for (const bool swapped : {false, true}) {
      CaseBuilder builder(++seed);
      const NodeId x = builder.Uniform({2 * 33, 5, 1, 1}, -9, 9);
      const NodeId result = builder.builder().Make(Op::kGlu, GluAttributes{kind, swapped}, {x});
      cases.push_back(std::move(builder).Finish(
          absl::StrCat(AbslView(GluName(kind)), " halves ", swapped), result, kFewRoundings));
    }
  }
}

}  // namespace

std::vector<OpCase> ElementwiseCases(uint64_t seed) {
  std::vector<OpCase> cases;
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) AddBinary(op, seed += 100, cases);
  AddId(seed += 100, cases);
  AddUnary("scale", seed += 100, -2, 2, kFewRoundings, cases,
           [](GraphBuilder& builder, NodeId x) { return builder.Scale(x, 1.7f, -0.3f); });
  AddUnary("clamp", seed += 100, -2, 2, kExact, cases,
           [](GraphBuilder& builder, NodeId x) { return builder.Clamp(x, -0.5f, 1); });
  for (int i = 0; i < kUnaryKindCount; ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    const bool positive = kind == UnaryKind::kSqrt || kind == UnaryKind::kLog;
    AddUnary(std::string(UnaryName(kind)), seed += 100, positive ? 0.01f : -12.0f, 12,
             kFewRoundings, cases,
             [&](GraphBuilder& builder, NodeId x) { return builder.Unary(x, kind); });
  }
  AddGlu(seed += 100, cases);
  return cases;
}

}  // namespace weft
