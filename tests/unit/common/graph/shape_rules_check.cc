#include "tests/unit/common/graph/shape_rules_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {

void CheckShapes(const std::vector<ShapeCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const ShapeCase& c = cases[i];
    const absl::StatusOr<TensorLayout> result = InferResult(c.op, c.attributes, c.sources);
    const std::string text = result.ok() ? LayoutText(*result) : result.status().ToString();
    EXPECT_THAT(text, ::testing::HasSubstr(c.want)) << "case " << i << ", " << OpName(c.op);
    // A wanted error names its op.
    if (!result.ok()) {
      EXPECT_THAT(text, ::testing::HasSubstr(std::string(OpName(c.op)) + ": ")) << "case " << i;
    }
  }
}

TensorLayout Of(DType dtype, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
  const absl::StatusOr<TensorLayout> layout = PackedLayout(dtype, {n0, n1, n2, n3});
  EXPECT_TRUE(layout.ok()) << layout.status();
  return layout.value_or(TensorLayout{});
}
TensorLayout F32(int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
  return Of(DType::kF32, n0, n1, n2, n3);
}
TensorLayout I32(int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
  return Of(DType::kI32, n0, n1, n2, n3);
}
TensorLayout Transposed(int64_t n0, int64_t n1) {
  TensorLayout layout = F32(n1, n0);
  std::swap(layout.ne[0], layout.ne[1]);
  std::swap(layout.nb[0], layout.nb[1]);
  return layout;
}
TensorLayout TransposedIds(int64_t n0, int64_t n1) {
  TensorLayout layout = Transposed(n0, n1);
  layout.dtype = DType::kI32;
  return layout;
}

}  // namespace weft
