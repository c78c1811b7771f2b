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
  const bool per_token = input != ModelInput::kOutputRows && input != ModelInput::kChanged;
  const NodeId all = InputLeaf(input);
  if (half_ == Half::kBoth || !per_token || all == kNoNode) return all;
  NodeId& part = half_inputs_[static_cast<size_t>(half_)][static_cast<size_t>(input)];
  if (part == kNoNode) {
    const Extents nb = builder_.layout(all).nb;
    part =
        builder_.View(all, {tokens(), 1, 1, 1}, nb, half_ == Half::kFirst ? 0 : tokens() * nb[0]);
  }
  return part;
}

NodeId GraphContext::InputLeaf(ModelInput input) {
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

int32_t GraphContext::CacheId(int64_t layer, bool is_value) {
  for (size_t i = 0; i < caches_.size(); ++i) {
    if (caches_[i].layer == layer && caches_[i].is_value == is_value) {
      return static_cast<int32_t>(i);
    }
  }
  builder_.Fail(absl::InternalError(absl::StrCat("layer ", layer, " has no cache")));
  return -1;
}

NodeId GraphContext::Store(int64_t layer, bool is_value, NodeId rows) {
  const NodeId slots = Input(ModelInput::kSlots);
  const int32_t id = CacheId(layer, is_value);
  if (id < 0) return kNoNode;
  NodeId& pages = cache_pages_.emplace(id, kNoNode).first->second;
  if (pages == kNoNode) {
    pages = builder_.Leaf(LeafKind::kCache, id, is_value ? shape_.value_type : shape_.key_type,
                          caches_[id].PageExtents(shape_.pages),
                          absl::StrCat(is_value ? "value_pages." : "key_pages.", layer));
  }
  pages = builder_.KvStore(pages, rows, slots);
  return pages;
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
