// Data movement.
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluators.h"

namespace weft::reference {
namespace {

// The same type on both sides: block by block, so that no value is touched.
void CopyBlocks(const HostTensor& from, const HostTensor& to) {
  const DTypeInfo& info = GetDTypeInfo(from.layout.dtype);
  const int64_t blocks = from.extent(0) / info.block_elements;
  ForEachRow(from.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < blocks; ++i0) {
      std::memcpy(to.Address(i0, i1, i2, i3), from.Address(i0, i1, i2, i3),
                  static_cast<size_t>(info.block_bytes));
    }
  });
}

}  // namespace

absl::Status Copy(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  if (x.layout.dtype == y.layout.dtype) {
    CopyBlocks(x, y);
    return absl::OkStatus();
  }
  absl::Status status;
  std::vector<float> row;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    status.Update(ReadRow(x, i1, i2, i3, row));
    status.Update(WriteRow(y, i1, i2, i3, row));
  });
  return status;
}

absl::Status Concat(const Operands& operands) {
  const HostTensor& first = operands.source(0);
  const int32_t axis = operands.As<AxisAttributes>().axis;
  const Extents& ne = first.layout.ne;
  // The two parts of the result, each with the strides of the whole.
  HostTensor head = operands.result;
  head.layout.ne[axis] = ne[axis];
  CopyBlocks(first, head);
  HostTensor tail = operands.result;
  tail.layout.ne[axis] -= ne[axis];
  tail.data += ne[axis] * tail.layout.nb[axis];
  CopyBlocks(operands.source(1), tail);
  return absl::OkStatus();
}

absl::Status Repeat(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) =
          x.F32(i0 % x.extent(0), i1 % x.extent(1), i2 % x.extent(2), i3 % x.extent(3));
    }
  });
  return absl::OkStatus();
}

absl::Status Pad(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const bool inside = i1 < x.extent(1) && i2 < x.extent(2) && i3 < x.extent(3);
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) = inside && i0 < x.extent(0) ? x.F32(i0, i1, i2, i3) : 0;
    }
  });
  return absl::OkStatus();
}

absl::Status Fill(const Operands& operands) {
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) = operands.As<FillAttributes>().value;
    }
  });
  return absl::OkStatus();
}

absl::Status Diag(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) = i0 == i1 ? x.F32(i0, 0, i2, i3) : 0;
    }
  });
  return absl::OkStatus();
}

absl::Status Tri(const Operands& operands) {
  const auto& triangle = operands.As<TriangleAttributes>();
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      const bool keep = i0 == i1 ? triangle.diagonal : (i0 < i1) == triangle.lower;
      y.F32(i0, i1, i2, i3) = keep ? x.F32(i0, i1, i2, i3) : 0;
    }
  });
  return absl::OkStatus();
}

// A negative id gives zeros; of a partial table, one of a row that is elsewhere too.
absl::Status GetRows(const Operands& operands) {
  const auto& part = operands.As<GetRowsAttributes>();
  const HostTensor& table = operands.source(0);
  const HostTensor& ids = operands.source(1);
  const HostTensor& y = operands.result;
  absl::Status status;
  std::vector<float> row;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    if (!status.ok()) return;
    const int64_t id = RowOfTable(part, ids.I32(i1, i2, i3), table.extent(1));
    uint8_t* target = y.Address(0, i1, i2, i3);
    const auto bytes = static_cast<size_t>(RowByteSize(y.layout));
    if (id < 0) {
      std::memset(target, 0, bytes);
      return;
    }
    status = CheckIndex("row id", id, table.extent(1));
    if (!status.ok()) return;
    if (table.layout.dtype == DType::kI32) {
      std::memcpy(target, table.Address(0, id, i2, i3), bytes);
      return;
    }
    status = ReadRow(table, id, i2, i3, row);
    std::memcpy(target, row.data(), row.size() * sizeof(float));
  });
  return status;
}

// A negative id writes nothing. Of several rows with one id the last stays.
absl::Status SetRows(const Operands& operands) {
  const HostTensor& rows = operands.source(1);
  const HostTensor& ids = operands.source(2);
  absl::Status status;
  std::vector<float> row;
  ForEachRow(rows.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const int32_t id = ids.I32(i1, i2, i3);
    if (!status.ok() || id < 0) return;
    status = CheckIndex("row id", id, operands.result.extent(1));
    if (!status.ok()) return;
    status = ReadRow(rows, i1, i2, i3, row);
    status.Update(WriteRow(operands.result, id, i2, i3, row));
  });
  return status;
}

}  // namespace weft::reference
