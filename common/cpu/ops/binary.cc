// Two tensors element by element; the second repeats over the first.
#include <cstring>

#include "common/base/status_macros.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"

namespace weft::cpu {
namespace {

using Kernel = void (*)(int64_t n, const float* a, const float* b, float* y);

// y[0..n) from a and one repeated row of `period` elements.
void RepeatedRow(Kernel kernel, int64_t n, int64_t period, const float* a, const float* b,
                 float* y) {
  if (period > 1) {
    for (int64_t i = 0; i < n; i += period) kernel(period, a + i, b, y + i);
    return;
  }
  // One value for the whole row.
  constexpr int64_t kWidth = 64;
  float values[kWidth];
  for (float& value : values) value = *b;
  for (int64_t i = 0; i < n; i += kWidth) {
    kernel(n - i < kWidth ? n - i : kWidth, a + i, values, y + i);
  }
}

absl::Status Combine(const Operands& operands, Launch& launch, Kernel kernel) {
  const HostTensor& a = operands.source(0);
  const HostTensor& b = operands.source(1);
  const HostTensor& y = operands.result;
  const Extents& ne = y.layout.ne;
  if (ElementCount(ne) == 0) return absl::OkStatus();
  if (b.layout.ne == ne && IsContiguous(a.layout) && IsContiguous(b.layout)) {
    launch.ForRange(ElementCount(ne), 1, [&](int64_t first, int64_t last, int) {
      kernel(last - first, &a.F32(0) + first, &b.F32(0) + first, &y.F32(0) + first);
    });
    return absl::OkStatus();
  }
  launch.ForRange(RowCount(y.layout), ne[0], [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const RowIndex at = RowAt(ne, row);
      const RowIndex other{at.i1 % b.extent(1), at.i2 % b.extent(2), at.i3 % b.extent(3)};
      RepeatedRow(kernel, ne[0], b.extent(0), FloatRow(a, at), FloatRow(b, other), FloatRow(y, at));
    }
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAdd(const Operands& operands, Launch& launch) {
  return Combine(operands, launch, launch.kernels().add);
}

absl::Status RunSub(const Operands& operands, Launch& launch) {
  return Combine(operands, launch, launch.kernels().sub);
}

absl::Status RunMul(const Operands& operands, Launch& launch) {
  return Combine(operands, launch, launch.kernels().mul);
}

absl::Status RunDiv(const Operands& operands, Launch& launch) {
  return Combine(operands, launch, launch.kernels().div);
}

absl::Status RunAddId(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const HostTensor& bias = operands.source(1);
  const HostTensor& ids = operands.source(2);
  const HostTensor& y = operands.result;
  const Extents& ne = y.layout.ne;
  for (int64_t row = 0; row < RowCount(y.layout); ++row) {
    const RowIndex at = RowAt(ne, row);
    const int32_t id = ids.I32(at.i1, at.i2);
    if (id >= 0) RETURN_IF_ERROR(reference::CheckIndex("id", id, bias.extent(1)));
  }
  launch.ForRange(RowCount(y.layout), ne[0], [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const RowIndex at = RowAt(ne, row);
      const int32_t id = ids.I32(at.i1, at.i2);
      const float* from = FloatRow(x, at);
      float* to = FloatRow(y, at);
      if (id >= 0) {
        launch.kernels().add(ne[0], from, &bias.F32(0, id), to);
      } else if (to != from) {
        std::memcpy(to, from, static_cast<size_t>(ne[0]) * sizeof(float));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
