#include "tests/conformance/op_case.h"

#include <cstdio>
#include <cstring>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {

NodeId CaseBuilder::Leaf(const Extents& ne, DType dtype, const std::vector<float>& values) {
  const NodeId id = builder_.Leaf(LeafKind::kInput, next_leaf_++, dtype, ne, "x");
  WEFT_CHECK(id != kNoNode);
  const TensorLayout& layout = builder_.layout(id);
  std::vector<uint8_t> bytes(static_cast<size_t>(ByteExtent(layout).value()));
  const auto elements = static_cast<size_t>(ne[0]);
  const auto row_bytes = static_cast<size_t>(RowByteSize(layout));
  for (size_t row = 0; row < static_cast<size_t>(RowCount(layout)); ++row) {
    WEFT_CHECK(Quantize(dtype, absl::MakeConstSpan(values).subspan(row * elements, elements),
                        absl::MakeSpan(bytes).subspan(row * row_bytes, row_bytes))
                   .ok());
  }
  leafs_.emplace_back(id, std::move(bytes));
  return id;
}

NodeId CaseBuilder::Integers(const Extents& ne, const std::vector<int32_t>& values) {
  const NodeId id = builder_.Leaf(LeafKind::kInput, next_leaf_++, DType::kI32, ne, "ids");
  WEFT_CHECK(static_cast<int64_t>(values.size()) == ElementCount(ne));
  std::vector<uint8_t> bytes(values.size() * 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  leafs_.emplace_back(id, std::move(bytes));
  return id;
}

NodeId CaseBuilder::Integers(const Extents& ne, int64_t low, int64_t high) {
  std::vector<int32_t> values(static_cast<size_t>(ElementCount(ne)));
  for (int32_t& value : values) value = static_cast<int32_t>(random_.Between(low, high));
  return Integers(ne, values);
}

OpCase CaseBuilder::Finish(std::string name, NodeId result, Tolerance tolerance) && {
  absl::StatusOr<Graph> graph = std::move(builder_).Finish();
  if (!graph.ok()) {
    std::fprintf(stderr, "case %s: %s\n", name.c_str(), graph.status().ToString().c_str());
  }
  WEFT_CHECK(graph.ok());
  WEFT_CHECK(VerifyGraph(*graph).ok());
  const Op op = graph->node(result).op;
  return {std::move(name), op, *std::move(graph), result, std::move(leafs_), tolerance};
}

}  // namespace weft
