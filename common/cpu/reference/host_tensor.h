// A tensor in host memory, and the operands of one op.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor_layout.h"

namespace weft::reference {

// Borrows the memory.
struct HostTensor {
  TensorLayout layout;
  uint8_t* data = nullptr;

  int64_t extent(int dimension) const { return layout.ne[dimension]; }
  // First byte of block i0 of that row (of element i0, for plain types).
  uint8_t* Address(int64_t i0, int64_t i1 = 0, int64_t i2 = 0, int64_t i3 = 0) const {
    return data + i0 * layout.nb[0] + i1 * layout.nb[1] + i2 * layout.nb[2] + i3 * layout.nb[3];
  }
  float& F32(int64_t i0, int64_t i1 = 0, int64_t i2 = 0, int64_t i3 = 0) const {
    return *reinterpret_cast<float*>(Address(i0, i1, i2, i3));
  }
  int32_t& I32(int64_t i0, int64_t i1 = 0, int64_t i2 = 0, int64_t i3 = 0) const {
    return *reinterpret_cast<int32_t*>(Address(i0, i1, i2, i3));
  }
};

struct Operands {
  Op op = Op::kLeaf;
  OpAttributes attributes;
  absl::InlinedVector<HostTensor, 4> sources;
  HostTensor result;

  const HostTensor& source(int index) const { return sources[static_cast<size_t>(index)]; }
  bool has_source(int index) const { return static_cast<size_t>(index) < sources.size(); }
  template <typename T>
  const T& As() const {
    return std::get<T>(attributes);
  }
};

// The operands of node `id` without addresses.
Operands OperandsOf(const Graph& graph, NodeId id);

// Calls body(i1, i2, i3) for every row of these extents.
template <typename Body>
void ForEachRow(const Extents& ne, Body body) {
  for (int64_t i3 = 0; i3 < ne[3]; ++i3) {
    for (int64_t i2 = 0; i2 < ne[2]; ++i2) {
      for (int64_t i1 = 0; i1 < ne[1]; ++i1) body(i1, i2, i3);
    }
  }
}

// The elements of one row as F32. The type has a codec; rows with gaps only for plain types.
absl::Status ReadRow(const HostTensor& tensor, int64_t i1, int64_t i2, int64_t i3,
                     std::vector<float>& values);
// Stores values.size() elements as the row; the row has no gaps.
absl::Status WriteRow(const HostTensor& tensor, int64_t i1, int64_t i2, int64_t i3,
                      const std::vector<float>& values);

// The row of a table of `rows` that id `id` names; negative if it gives zeros: a negative id and,
// of a partial table, one of a row that is elsewhere.
inline int64_t RowOfTable(const GetRowsAttributes& part, int64_t id, int64_t rows) {
  if (id < 0 || !part.partial_table) return id;
  const int64_t row = id - part.first_row;
  return row < rows ? row : -1;
}

// INVALID_ARGUMENT "slot 99 is not in [0, 64)" unless 0 <= value < limit.
absl::Status CheckIndex(const char* what, int64_t value, int64_t limit);

}  // namespace weft::reference
