#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

void AddCopies(DType dtype, std::vector<TestCase>& cases) {
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    return builder.graph().Copy(builder.Values({256, 2, 1, 1}), dtype);
  });
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    return builder.graph().Copy(builder.Weights({256, 3, 1, 1}, dtype), DType::kF32);
  });
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    const NodeId x = builder.Weights({256, 3, 2, 1}, dtype);
    return builder.graph().Copy(builder.graph().Permute(x, {0, 2, 1, 3}), dtype);
  });
}

void AddRowMoves(DType dtype, std::vector<TestCase>& cases) {
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    const NodeId table = builder.Weights({512, 9, 1, 1}, dtype);
    return builder.graph().GetRows(table, builder.Integers({4, 1, 1, 1}, {8, 0, -1, 3}));
  });
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    const NodeId table = builder.Pages({256, 5, 1, 1}, dtype);
    const NodeId rows = builder.Values({256, 2, 1, 1});
    const NodeId ids = builder.Integers({2, 1, 1, 1}, {4, 1});
    return builder.graph().Make(Op::kSetRows, {}, {table, rows, ids});
  });
}

void AddShapes(std::vector<TestCase>& cases) {
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    return builder.graph().Copy(builder.graph().Transpose(builder.Values({37, 11, 2, 1})),
                                DType::kF32);
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    const NodeId x = builder.Integers({2, 3, 1, 1}, {1, -2, 3, 4, 50, 6});
    return builder.graph().Copy(builder.graph().Transpose(x), DType::kI32);
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    const NodeId table = builder.Integers({2, 3, 1, 1}, {1, -2, 3, 4, 50, 6});
    return builder.graph().GetRows(table, builder.Integers({3, 1, 1, 1}, {2, -1, 0}));
  });
  for (const int32_t axis : {0, 2}) {
    AddCase(cases, kExact, [&](CaseBuilder& builder) {
      Extents ne = {5, 3, 2, 2};
      const NodeId a = builder.Values(ne);
      ne[static_cast<size_t>(axis)] = 4;
      const NodeId b = builder.Values(ne);
      return builder.graph().Concat(a, b, axis);
    });
  }
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    return builder.graph().Repeat(builder.Values({3, 1, 2, 1}), {12, 4, 2, 3});
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    const NodeId x = builder.Values({5, 4, 2, 1});
    return builder.graph().Make(Op::kPad, PadAttributes{{3, 0, 1, 2}}, {x});
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    return builder.graph().Make(Op::kFill, FillAttributes{{77, 3, 1, 1}, -1.5f}, {});
  });
  AddCase(cases, kExact, [](CaseBuilder& builder) {
    const NodeId x = builder.Values({6, 1, 2, 1});
    return builder.graph().Make(Op::kDiag, {}, {x});
  });
  for (const bool lower : {false, true}) {
    AddCase(cases, kExact, [&](CaseBuilder& builder) {
      const NodeId x = builder.Values({7, 7, 2, 1});
      return builder.graph().Make(Op::kTri, TriangleAttributes{lower, !lower}, {x});
    });
  }
}

}  // namespace

void AddMoveCases(std::vector<TestCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    AddCopies(info.dtype, cases);
    AddRowMoves(info.dtype, cases);
  }
  AddShapes(cases);
}

}  // namespace weft::self_test
