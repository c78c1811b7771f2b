#include "worker/self_test/test_case.h"

#include <cstring>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft::self_test {
namespace {

constexpr size_t kDistinctBlocks = 6;

std::vector<float> Draw(size_t count, const LeafValues& values, Random& random) {
  std::vector<float> drawn(count);
  const double width = static_cast<double>(values.high) - values.low;
  for (float& value : drawn) value = static_cast<float>(values.low + width * random.Uniform());
  return drawn;
}

// Blocks of one type, behind each other.
std::vector<uint8_t> Blocks(DType dtype, size_t count, const LeafValues& values, Random& random) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  std::vector<uint8_t> blocks(count * static_cast<size_t>(info.block_bytes));
  const std::vector<float> drawn =
      Draw(count * static_cast<size_t>(info.block_elements), values, random);
  WEFT_CHECK(Quantize(dtype, drawn, absl::MakeSpan(blocks)).ok());
  return blocks;
}

}  // namespace

std::vector<uint8_t> BytesOf(const TensorLayout& layout, const LeafValues& values, Random& random) {
  const DTypeInfo& info = GetDTypeInfo(layout.dtype);
  const auto elements = static_cast<size_t>(ElementCount(layout));
  if (layout.dtype == DType::kI32) {
    WEFT_CHECK(values.integers.size() == elements);
    std::vector<uint8_t> bytes(elements * sizeof(int32_t));
    if (elements > 0) std::memcpy(bytes.data(), values.integers.data(), bytes.size());
    return bytes;
  }
  const size_t count = elements / static_cast<size_t>(info.block_elements);
  if (!info.quantized) return Blocks(layout.dtype, count, values, random);
  const std::vector<uint8_t> pool = Blocks(layout.dtype, kDistinctBlocks, values, random);
  const auto block = static_cast<size_t>(info.block_bytes);
  std::vector<uint8_t> bytes(count * block);
  for (size_t i = 0; i < count; ++i) {
    const auto chosen =
        static_cast<size_t>(random.Between(0, static_cast<int64_t>(kDistinctBlocks) - 1));
    std::memcpy(&bytes[i * block], &pool[chosen * block], block);
  }
  return bytes;
}

NodeId CaseBuilder::Leaf(LeafKind kind, DType dtype, const Extents& ne, LeafValues values) {
  const auto id = static_cast<int32_t>(leafs_.size());
  values.leaf = builder_.Leaf(kind, id, dtype, ne, "self-test");
  leafs_.push_back(std::move(values));
  return leafs_.back().leaf;
}

TestCase CaseBuilder::Finish(NodeId result, double limit) && {
  absl::StatusOr<Graph> graph = std::move(builder_).Finish();
  WEFT_CHECK(graph.ok());
  WEFT_CHECK(graph->Executes(result));
  return {*std::move(graph), result, std::move(leafs_), limit};
}

}  // namespace weft::self_test
