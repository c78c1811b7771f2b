// Gathers and scatters of rows by index. All indices are checked before anything is written.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"

namespace weft::cpu {
namespace {

using reference::CheckIndex;

// Rows [0, RowCount(rows)) are at ids[i1, i2, i3]; negative ones are skipped.
absl::Status CheckIds(const TensorLayout& rows, const HostTensor& ids, int64_t limit) {
  for (int64_t row = 0; row < RowCount(rows); ++row) {
    const auto [i1, i2, i3] = RowAt(rows.ne, row);
    const int32_t id = ids.I32(i1, i2, i3);
    if (id >= 0) RETURN_IF_ERROR(CheckIndex("row id", id, limit));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGetRows(const Operands& operands, Launch& launch) {
  const HostTensor& table = operands.source(0);
  const HostTensor& ids = operands.source(1);
  const HostTensor& y = operands.result;
  const auto& part = operands.As<GetRowsAttributes>();
  if (!part.partial_table) RETURN_IF_ERROR(CheckIds(y.layout, ids, table.extent(1)));
  const int64_t n = y.extent(0);
  const bool plain = table.layout.dtype == y.layout.dtype;
  const RowKernel* kernel = plain ? nullptr : &launch.kernels().row[FormatOf(table.layout.dtype)];
  const auto bytes = static_cast<size_t>(RowByteSize(y.layout));
  launch.ForRange(RowCount(y.layout), n, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) {
      const auto [i1, i2, i3] = RowAt(y.layout.ne, row);
      const int64_t id = reference::RowOfTable(part, ids.I32(i1, i2, i3), table.extent(1));
      uint8_t* target = y.Address(0, i1, i2, i3);
      if (id < 0) {
        std::memset(target, 0, bytes);
      } else if (plain) {
        std::memcpy(target, table.Address(0, id, i2, i3), bytes);
      } else {
        kernel->to_float(n, table.Address(0, id, i2, i3), reinterpret_cast<float*>(target));
      }
    }
  });
  return absl::OkStatus();
}

// On one thread: of several rows with one id the last must stay.
absl::Status RunSetRows(const Operands& operands, Launch& launch) {
  const HostTensor& rows = operands.source(1);
  const HostTensor& ids = operands.source(2);
  const HostTensor& y = operands.result;
  const RowKernel& kernel = launch.kernels().row[FormatOf(y.layout.dtype)];
  if (kernel.from_float == nullptr) return RunReference(operands, launch);
  RETURN_IF_ERROR(CheckIds(rows.layout, ids, y.extent(1)));
  for (int64_t row = 0; row < RowCount(rows.layout); ++row) {
    const RowIndex at = RowAt(rows.layout.ne, row);
    const int32_t id = ids.I32(at.i1, at.i2, at.i3);
    if (id < 0) continue;
    kernel.from_float(rows.extent(0), FloatRow(rows, at), y.Address(0, id, at.i2, at.i3));
    launch.Tick(0);
  }
  return absl::OkStatus();
}

absl::Status KvStoreSupport(const Operands& operands, const KernelTable& kernels) {
  const DType dtype = operands.result.layout.dtype;
  const Format format = FormatOf(dtype);
  if (format != kFormatCount && kernels.row[format].from_float != nullptr) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("pages of type ", AbslView(DTypeName(dtype)), " cannot be written"));
}

// Padding tokens share the slots of page 0, which nothing reads; every other slot is one token's.
// Tokens of one slot are therefore written by one worker, in order: the work is split by KV head.
absl::Status RunKvStore(const Operands& operands, Launch& launch) {
  const HostTensor& rows = operands.source(1);
  const HostTensor& slots = operands.source(2);
  const HostTensor& pages = operands.result;
  const int64_t tokens = rows.extent(2);
  for (int64_t t = 0; t < tokens; ++t) {
    RETURN_IF_ERROR(CheckIndex("slot", slots.I32(t), pages.extent(3) * kPageTokens));
  }
  const RowKernel& kernel = launch.kernels().row[FormatOf(pages.layout.dtype)];
  launch.ForRange(rows.extent(1), tokens * rows.extent(0), [&](int64_t first, int64_t last, int) {
    for (int64_t head = first; head < last; ++head) {
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t slot = slots.I32(t);
        kernel.from_float(rows.extent(0), &rows.F32(0, head, t),
                          pages.Address(0, slot % kPageTokens, head, slot / kPageTokens));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
