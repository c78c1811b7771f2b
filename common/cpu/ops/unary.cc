// One tensor element by element, and gated units.
#include "absl/functional/function_ref.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"

namespace weft::cpu {
namespace {

static_assert(static_cast<int>(kUnaryFunctionCount) == kUnaryKindCount);
static_assert(static_cast<int>(kUnaryCos) == static_cast<int>(UnaryKind::kCos));

// Element operations that a transcendental function is worth.
constexpr int64_t kHardWork = 4;

using RowFunction = absl::FunctionRef<void(int64_t n, const float* x, float* y)>;

absl::Status Map(const Operands& operands, Launch& launch, int64_t work, RowFunction function) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const Extents& ne = y.layout.ne;
  if (IsContiguous(x.layout)) {
    launch.ForRange(ElementCount(ne), work, [&](int64_t first, int64_t last, int) {
      function(last - first, &x.F32(0) + first, &y.F32(0) + first);
    });
    return absl::OkStatus();
  }
  launch.ForRange(RowCount(y.layout), ne[0] * work, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const RowIndex at = RowAt(ne, row);
      function(ne[0], FloatRow(x, at), FloatRow(y, at));
    }
  });
  return absl::OkStatus();
}

void Gate(const KernelTable& kernels, const GluAttributes& attributes, int64_t n, const float* gate,
          const float* up, float* y) {
  switch (attributes.kind) {
    case GluKind::kSwiglu:
      return kernels.swiglu(n, gate, up, y);
    case GluKind::kGeglu:
      return kernels.geglu(n, gate, up, y);
    case GluKind::kReglu:
      return kernels.reglu(n, gate, up, y);
    case GluKind::kSwigluOai:
      return kernels.swiglu_oai(n, gate, up, attributes.alpha, attributes.limit, y);
  }
}

}  // namespace

absl::Status RunScale(const Operands& operands, Launch& launch) {
  const auto& scale = operands.As<ScaleAttributes>();
  return Map(operands, launch, 1, [&](int64_t n, const float* x, float* y) {
    launch.kernels().scale(n, x, scale.factor, scale.bias, y);
  });
}

absl::Status RunClamp(const Operands& operands, Launch& launch) {
  const auto& clamp = operands.As<ClampAttributes>();
  return Map(operands, launch, 1, [&](int64_t n, const float* x, float* y) {
    launch.kernels().clamp(n, x, clamp.low, clamp.high, y);
  });
}

absl::Status RunUnary(const Operands& operands, Launch& launch) {
  const auto kind = static_cast<size_t>(operands.As<UnaryAttributes>().kind);
  return Map(operands, launch, kHardWork,
             [&](int64_t n, const float* x, float* y) { launch.kernels().unary[kind](n, x, y); });
}

absl::Status RunGlu(const Operands& operands, Launch& launch) {
  const auto& attributes = operands.As<GluAttributes>();
  const HostTensor& y = operands.result;
  const Extents& ne = y.layout.ne;
  const bool halves = !operands.has_source(1);
  const HostTensor& gate = operands.source(0);
  const HostTensor& up = operands.source(halves ? 0 : 1);
  const int64_t gate_start = halves && attributes.swapped ? ne[0] : 0;
  const int64_t up_start = halves && !attributes.swapped ? ne[0] : 0;
  if (!halves && IsContiguous(gate.layout) && IsContiguous(up.layout)) {
    launch.ForRange(ElementCount(ne), kHardWork, [&](int64_t first, int64_t last, int) {
      Gate(launch.kernels(), attributes, last - first, &gate.F32(0) + first, &up.F32(0) + first,
           &y.F32(0) + first);
    });
    return absl::OkStatus();
  }
  launch.ForRange(RowCount(y.layout), ne[0] * kHardWork, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const RowIndex at = RowAt(ne, row);
      Gate(launch.kernels(), attributes, ne[0], FloatRow(gate, at) + gate_start,
           FloatRow(up, at) + up_start, FloatRow(y, at));
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
