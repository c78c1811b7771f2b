#include "coordinator/models/graph_context.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, kModelInputCount> kInputNames = {
    "tokens", "positions", "sequences", "slots", "output_rows", "changed"};

}  // namespace

NodeId GraphContext::Weight(std::string_view name) {
  const int32_t id = weights_.Find(name);
  if (id < 0) return kNoNode;
  const auto found = weight_leafs_.find(id);
  if (found != weight_leafs_.end()) return found->second;
  const TensorLayout& layout = weights_.weights()[id].layout;
  const NodeId leaf = builder_.Leaf(LeafKind::kWeight, id, layout.dtype, layout.ne, name);
  weight_leafs_.emplace(id, leaf);
  return leaf;
}

NodeId GraphContext::LayerWeight(int64_t layer, std::string_view suffix) {
  return Weight(absl::StrCat("blk.", layer, ".", AbslView(suffix)));
}

NodeId GraphContext::Input(ModelInput input) {
  const auto index = static_cast<size_t>(input);
  NodeId& leaf = inputs_[index];
  if (leaf == kNoNode) {
    const bool of_row = input == ModelInput::kOutputRows;
    const Extents ne = input == ModelInput::kChanged
                           ? Extents{shape_.changed, shape_.outputs, 1, 1}
                           : Extents{of_row ? shape_.outputs : shape_.tokens, 1, 1, 1};
    leaf = builder_.Leaf(LeafKind::kInput, static_cast<int32_t>(input), DType::kI32, ne,
                         kInputNames[index]);
  }
  return leaf;
}

NodeId GraphContext::PageTable() {
  if (page_table_ == kNoNode) {
    page_table_ = builder_.Leaf(LeafKind::kPageTable, 0, DType::kI32,
                                {shape_.pages_per_sequence, shape_.sequences, 1, 1}, "page_table");
  }
  return page_table_;
}

NodeId GraphContext::CachePages(int64_t layer, bool is_value) {
  for (size_t i = 0; i < caches_.size(); ++i) {
    const CacheSpec& cache = caches_[i];
    if (cache.layer != layer || cache.is_value != is_value) continue;
    const auto id = static_cast<int32_t>(i);
    const auto found = cache_leafs_.find(id);
    if (found != cache_leafs_.end()) return found->second;
    const NodeId leaf =
        builder_.Leaf(LeafKind::kCache, id, is_value ? shape_.value_type : shape_.key_type,
                      cache.PageExtents(shape_.pages),
                      absl::StrCat(is_value ? "value_pages." : "key_pages.", layer));
    cache_leafs_.emplace(id, leaf);
    return leaf;
  }
  builder_.Fail(absl::InternalError(absl::StrCat("layer ", layer, " has no cache")));
  return kNoNode;
}

NodeId GraphContext::Linear(std::string_view name, NodeId x) {
  const NodeId product = builder_.MulMat(Weight(absl::StrCat(AbslView(name), ".weight")), x);
  const NodeId bias = Weight(absl::StrCat(AbslView(name), ".bias"));
  return bias == kNoNode ? product : builder_.Add(product, bias);
}

NodeId GraphContext::LayerLinear(int64_t layer, std::string_view name, NodeId x) {
  return Linear(absl::StrCat("blk.", layer, ".", AbslView(name)), x);
}

}  // namespace weft
