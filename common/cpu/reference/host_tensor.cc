#include "common/cpu/reference/host_tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft::reference {

Operands OperandsOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Operands operands;
  operands.op = node.op;
  operands.attributes = node.attributes;
  for (const NodeId source : node.sources) operands.sources.push_back({graph.layout(source)});
  operands.result = {node.layout};
  return operands;
}

absl::Status ReadRow(const HostTensor& tensor, int64_t i1, int64_t i2, int64_t i3,
                     std::vector<float>& values) {
  const TensorLayout& layout = tensor.layout;
  values.resize(static_cast<size_t>(layout.ne[0]));
  if (HasContiguousRows(layout)) {
    const auto bytes = static_cast<size_t>(RowByteSize(layout));
    return Dequantize(layout.dtype, absl::MakeConstSpan(tensor.Address(0, i1, i2, i3), bytes),
                      absl::MakeSpan(values));
  }
  const auto bytes = static_cast<size_t>(GetDTypeInfo(layout.dtype).block_bytes);
  for (int64_t i0 = 0; i0 < layout.ne[0]; ++i0) {
    RETURN_IF_ERROR(Dequantize(layout.dtype,
                               absl::MakeConstSpan(tensor.Address(i0, i1, i2, i3), bytes),
                               absl::MakeSpan(&values[static_cast<size_t>(i0)], 1)));
  }
  return absl::OkStatus();
}

absl::Status WriteRow(const HostTensor& tensor, int64_t i1, int64_t i2, int64_t i3,
                      const std::vector<float>& values) {
  const auto bytes = static_cast<size_t>(RowByteSize(tensor.layout));
  return Quantize(tensor.layout.dtype, values,
                  absl::MakeSpan(tensor.Address(0, i1, i2, i3), bytes));
}

absl::Status CheckIndex(const char* what, int64_t value, int64_t limit) {
  if (value >= 0 && value < limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", value, " is not in [0, ", limit, ")"));
}

}  // namespace weft::reference
