// Ops that only move or convert data.
#include <algorithm>
#include <cstring>

#include "common/base/checked_math.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"

namespace weft::cpu {
namespace {

// Rows of the same type and extents, whatever their strides.
void CopyRows(const HostTensor& from, const HostTensor& to, Launch& launch) {
  const auto row_bytes = static_cast<size_t>(RowByteSize(from.layout));
  const DTypeInfo& info = GetDTypeInfo(from.layout.dtype);
  const auto block_bytes = static_cast<size_t>(info.block_bytes);
  const int64_t blocks = from.extent(0) / info.block_elements;
  const bool whole = HasContiguousRows(from.layout) && HasContiguousRows(to.layout);
  launch.ForRange(
      RowCount(from.layout), whole ? blocks / 4 : blocks, [&](int64_t first, int64_t last, int) {
        for (int64_t row = first; row < last; ++row) {
          const auto [i1, i2, i3] = RowAt(from.layout.ne, row);
          uint8_t* target = to.Address(0, i1, i2, i3);
          const uint8_t* source = from.Address(0, i1, i2, i3);
          if (whole) {
            std::memcpy(target, source, row_bytes);
            continue;
          }
          for (int64_t i = 0; i < blocks; ++i) {
            std::memcpy(target + i * to.layout.nb[0], source + i * from.layout.nb[0], block_bytes);
          }
        }
      });
}

// Both sides have kernels for their rows.
bool HasRowKernels(const TensorLayout& from, const TensorLayout& to, const KernelTable& kernels) {
  const Format source = FormatOf(from.dtype);
  const Format target = FormatOf(to.dtype);
  return source != kFormatCount && target != kFormatCount && HasContiguousRows(from) &&
         kernels.row[source].to_float != nullptr && kernels.row[target].from_float != nullptr;
}

int64_t RowScratch(const TensorLayout& layout) { return AlignUp(layout.ne[0] * 4, 64); }

}  // namespace

int64_t CopyWorkspace(const Operands& operands, const KernelTable&, int threads) {
  const TensorLayout& from = operands.source(0).layout;
  return from.dtype == operands.result.layout.dtype ? 0 : RowScratch(from) * threads;
}

absl::Status RunCopy(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const KernelTable& kernels = launch.kernels();
  if (x.layout.dtype == y.layout.dtype) {
    CopyRows(x, y, launch);
    return absl::OkStatus();
  }
  // Transposed conversions and those to types without a vector rounding are the oracle's.
  if (!HasRowKernels(x.layout, y.layout, kernels)) return RunReference(operands, launch);
  const RowKernel& from = kernels.row[FormatOf(x.layout.dtype)];
  const RowKernel& to = kernels.row[FormatOf(y.layout.dtype)];
  const int64_t n = x.extent(0);
  launch.ForRange(RowCount(x.layout), n, [&](int64_t first, int64_t last, int worker) {
    auto* row = reinterpret_cast<float*>(launch.workspace() + worker * RowScratch(x.layout));
    for (int64_t i = first; i < last; ++i) {
      const auto [i1, i2, i3] = RowAt(x.layout.ne, i);
      from.to_float(n, x.Address(0, i1, i2, i3), row);
      to.from_float(n, row, y.Address(0, i1, i2, i3));
    }
  });
  return absl::OkStatus();
}

absl::Status RunConcat(const Operands& operands, Launch& launch) {
  const HostTensor& first = operands.source(0);
  const int32_t axis = operands.As<AxisAttributes>().axis;
  // The two parts of the result, each with the strides of the whole.
  HostTensor head = operands.result;
  head.layout.ne = first.layout.ne;
  CopyRows(first, head, launch);
  HostTensor tail = operands.result;
  tail.layout.ne = operands.source(1).layout.ne;
  tail.data += first.extent(axis) * tail.layout.nb[axis];
  CopyRows(operands.source(1), tail, launch);
  return absl::OkStatus();
}

absl::Status RunRepeat(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  if (!HasContiguousRows(x.layout)) return RunReference(operands, launch);
  const int64_t period = x.extent(0);
  launch.ForRange(RowCount(y.layout), y.extent(0), [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const RowIndex at = RowAt(y.layout.ne, row);
      const RowIndex from{at.i1 % x.extent(1), at.i2 % x.extent(2), at.i3 % x.extent(3)};
      float* target = FloatRow(y, at);
      for (int64_t i = 0; i < y.extent(0); i += period) {
        std::memcpy(target + i, FloatRow(x, from), static_cast<size_t>(period) * sizeof(float));
      }
    }
  });
  return absl::OkStatus();
}

absl::Status RunFill(const Operands& operands, Launch& launch) {
  const float value = operands.As<FillAttributes>().value;
  const HostTensor& y = operands.result;
  launch.ForRange(ElementCount(y.layout), 1, [&](int64_t first, int64_t last, int) {
    std::fill(&y.F32(0) + first, &y.F32(0) + last, value);
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
