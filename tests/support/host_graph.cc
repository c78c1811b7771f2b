#include "tests/support/host_graph.h"

#include <cstring>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluate_node.h"
#include "common/cpu/reference/host_tensor.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {

HostGraph::HostGraph(const Graph& graph) : graph_(graph) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (graph.Root(id) != id) {
      memory_.emplace_back();
      data_.push_back(data_[static_cast<size_t>(Index(graph.Root(id)))] +
                      graph.node(id).view_offset);
      continue;
    }
    memory_.push_back(
        std::make_unique<uint8_t[]>(static_cast<size_t>(ByteExtent(graph.layout(id)).value())));
    data_.push_back(memory_.back().get());
  }
}

absl::Span<uint8_t> HostGraph::bytes(NodeId id) {
  WEFT_CHECK(graph_.Root(id) == id);
  return {data_[static_cast<size_t>(Index(id))],
          static_cast<size_t>(ByteExtent(graph_.layout(id)).value())};
}

void HostGraph::SetF32(NodeId id, absl::Span<const float> values) {
  const TensorLayout& layout = graph_.layout(id);
  WEFT_CHECK(static_cast<int64_t>(values.size()) == ElementCount(layout));
  const auto elements = static_cast<size_t>(layout.ne[0]);
  const auto row_bytes = static_cast<size_t>(RowByteSize(layout));
  for (size_t row = 0; row < static_cast<size_t>(RowCount(layout)); ++row) {
    WEFT_CHECK(Quantize(layout.dtype, values.subspan(row * elements, elements),
                        bytes(id).subspan(row * row_bytes, row_bytes))
                   .ok());
  }
}

void HostGraph::SetI32(NodeId id, absl::Span<const int32_t> values) {
  WEFT_CHECK(graph_.layout(id).dtype == DType::kI32);
  WEFT_CHECK(static_cast<int64_t>(values.size()) == ElementCount(graph_.layout(id)));
  if (!values.empty()) std::memcpy(bytes(id).data(), values.data(), values.size() * 4);
}

absl::Status HostGraph::Run() {
  for (int32_t i = 0; i < graph_.size(); ++i) {
    RETURN_IF_ERROR(EvaluateNode(graph_, NodeId{i}, data_));
  }
  return absl::OkStatus();
}

std::vector<float> HostGraph::F32(NodeId id) const {
  const reference::HostTensor tensor{graph_.layout(id), data_[static_cast<size_t>(Index(id))]};
  std::vector<float> all;
  std::vector<float> row;
  reference::ForEachRow(tensor.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    WEFT_CHECK(reference::ReadRow(tensor, i1, i2, i3, row).ok());
    all.insert(all.end(), row.begin(), row.end());
  });
  return all;
}

std::vector<int32_t> HostGraph::I32(NodeId id) const {
  const reference::HostTensor tensor{graph_.layout(id), data_[static_cast<size_t>(Index(id))]};
  WEFT_CHECK(tensor.layout.dtype == DType::kI32);
  std::vector<int32_t> all;
  reference::ForEachRow(tensor.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < tensor.extent(0); ++i0) all.push_back(tensor.I32(i0, i1, i2, i3));
  });
  return all;
}

}  // namespace weft
