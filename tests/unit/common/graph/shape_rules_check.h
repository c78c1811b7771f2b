// One table row of the shape rule tests, and its check.
#pragma once

#include <string>
#include <vector>

#include "common/graph/op.h"

namespace weft {

struct ShapeCase {
  Op op;
  OpAttributes attributes;
  std::vector<TensorLayout> sources;
  std::string want;  // the layout's text, or a part of the error
};

void CheckShapes(const std::vector<ShapeCase>& cases);

// Packed layouts.
TensorLayout F32(int64_t n0, int64_t n1 = 1, int64_t n2 = 1, int64_t n3 = 1);
TensorLayout I32(int64_t n0, int64_t n1 = 1, int64_t n2 = 1, int64_t n3 = 1);
TensorLayout Of(DType dtype, int64_t n0, int64_t n1 = 1, int64_t n2 = 1, int64_t n3 = 1);
// F32 [n0, n1] whose rows are columns of something else.
TensorLayout Transposed(int64_t n0, int64_t n1);
// The same with I32.
TensorLayout TransposedIds(int64_t n0, int64_t n1);

}  // namespace weft
