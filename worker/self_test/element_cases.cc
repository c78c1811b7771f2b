#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

constexpr Extents kShape = {72, 3, 5, 1};  // more than a vector register, and not a multiple of it

void AddBinary(std::vector<TestCase>& cases) {
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) {
    const double limit = op == Op::kDiv ? kFewRoundings : kExact;
    // Of the same shape, one row for all, a number for each row, one number.
    for (const Extents& other :
         {kShape, Extents{72, 1, 1, 1}, Extents{1, 3, 5, 1}, Extents{1, 1, 1, 1}}) {
      AddCase(cases, limit, [&](CaseBuilder& builder) {
        const NodeId a = builder.Values(kShape);
        const NodeId b = builder.Between(other, 0.5f, 2);
        return builder.graph().Make(op, {}, {a, b});
      });
    }
    AddCase(cases, limit, [&](CaseBuilder& builder) {
      const NodeId a = builder.graph().Permute(builder.Values({9, 5, 4, 1}), {0, 2, 1, 3});
      const NodeId b = builder.Between({9, 4, 5, 1}, 0.5f, 2);
      return builder.graph().Make(op, {}, {a, b});
    });
  }
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    const NodeId x = builder.Values({40, 2, 3, 1});
    const NodeId bias = builder.Weights({40, 4, 1, 1});
    const NodeId ids = builder.Integers({2, 3, 1, 1}, {0, 3, 2, -1, 1, 1});
    return builder.graph().AddId(x, bias, ids);
  });
}

void AddUnary(std::vector<TestCase>& cases) {
  for (int i = 0; i < kUnaryKindCount; ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    const bool positive = kind == UnaryKind::kSqrt || kind == UnaryKind::kLog;
    AddCase(cases, kFewRoundings, [&](CaseBuilder& builder) {
      const NodeId x = builder.Between(kShape, positive ? 0.05f : -4, 4);
      return builder.graph().Unary(x, kind);
    });
  }
  AddCase(cases, kFewRoundings,
          [](CaseBuilder& builder) { return builder.graph().Scale(builder.Values(kShape), 1.7f); });
  AddCase(cases, kFewRoundings, [](CaseBuilder& builder) {
    return builder.graph().Scale(builder.Values(kShape), 1.7f, -0.3f);
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    return builder.graph().Clamp(builder.Values(kShape), -0.5f, 1);
  });
}

void AddGlu(std::vector<TestCase>& cases) {
  for (const GluKind kind :
       {GluKind::kSwiglu, GluKind::kGeglu, GluKind::kReglu, GluKind::kSwigluOai}) {
    AddCase(cases, kFewRoundings, [&](CaseBuilder& builder) {
      const NodeId gate = builder.Between(kShape, -4, 9);
      const NodeId up = builder.Between(kShape, -9, 9);
      return builder.graph().Glu(gate, up, {kind});
    });
    for (const bool swapped : {false, true}) {
      AddCase(cases, kFewRoundings, [&](CaseBuilder& builder) {
        const NodeId x = builder.Between({66, 5, 1, 1}, -4, 4);
        return builder.graph().Make(Op::kGlu, GluAttributes{kind, swapped}, {x});
      });
    }
  }
}

}  // namespace

void AddElementCases(std::vector<TestCase>& cases) {
  AddBinary(cases);
  AddUnary(cases);
  AddGlu(cases);
}

}  // namespace weft::self_test
