#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

void AddProduct(DType dtype, const Extents& a, const Extents& b, std::vector<TestCase>& cases) {
  AddCase(cases, ProductLimit(dtype), [&](CaseBuilder& builder) {
    const NodeId weights = builder.Weights(a, dtype);
    const NodeId columns = builder.Values(b);
    return builder.graph().MulMat(weights, columns);
  });
}

// Of 34 rows, by 3 experts of which each token uses 2; one choice is none.
void AddExperts(DType dtype, int64_t tokens, bool shared, std::vector<TestCase>& cases) {
  AddCase(cases, ProductLimit(dtype), [&](CaseBuilder& builder) {
    const NodeId weights = builder.Weights({256, 34, 3, 1}, dtype);
    const NodeId columns = builder.Values({256, shared ? 1 : 2, tokens, 1});
    std::vector<int32_t> choices(static_cast<size_t>(2 * tokens));
    for (size_t i = 0; i < choices.size(); ++i) choices[i] = static_cast<int32_t>((i * i + 1) % 3);
    choices.back() = -1;
    const NodeId ids = builder.Integers({2, tokens, 1, 1}, choices);
    return builder.graph().MulMatId(weights, columns, ids);
  });
}

}  // namespace

void AddProductCases(std::vector<TestCase>& cases) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    // One column, as in decode; and enough for kernels and devices that only take many. (The
    // accelerators there are also want many rows, of types that are not quantised.)
    AddProduct(info.dtype, {512, 35, 1, 1}, {512, 1, 1, 1}, cases);
    AddProduct(info.dtype, {256, info.quantized ? 34 : 66, 1, 1}, {256, 65, 1, 1}, cases);
    AddExperts(info.dtype, 1, true, cases);
    AddExperts(info.dtype, 9, false, cases);
  }
  // A matrix for each two of the batch; rows shorter than a vector register.
  AddProduct(DType::kF32, {64, 10, 2, 1}, {64, 3, 4, 1}, cases);
  AddProduct(DType::kF16, {7, 3, 2, 1}, {7, 2, 2, 3}, cases);
  for (const bool lower : {false, true}) {
    AddCase(cases, kSolve, [&](CaseBuilder& builder) {
      const NodeId a = builder.Between({12, 12, 2, 1}, 0.5f, 1);
      const NodeId b = builder.Values({5, 12, 2, 1});
      return builder.graph().Make(Op::kSolveTri, TriangleAttributes{lower, lower}, {a, b});
    });
  }
}

}  // namespace weft::self_test
