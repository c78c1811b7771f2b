#include "coordinator/meta/rank_nodes.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

int32_t AsInt(EmittedId id) { return static_cast<int32_t>(id); }

}  // namespace

EmittedId RankNodes::Leaf(LeafAttributes attributes, const TensorLayout& layout, int32_t device,
                          std::string name) {
  Emitted leaf;
  leaf.node.attributes = attributes;
  leaf.node.layout = layout;
  leaf.node.name = std::move(name);
  leaf.device = device;
  leaf.phase = -1;  // in front of everything
  leaf.position = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(std::move(leaf));
  return EmittedId{static_cast<int32_t>(nodes_.size()) - 1};
}

absl::StatusOr<EmittedId> RankNodes::Make(Op op, OpAttributes attributes,
                                          absl::Span<const EmittedId> sources, int32_t device,
                                          const Node& like) {
  std::vector<TensorLayout> layouts;
  Emitted made;
  for (const EmittedId source : sources) {
    layouts.push_back(layout(source));
    made.node.sources.push_back(NodeId{AsInt(source)});
    // A tensor of another rank is there only after that rank's part of this phase.
    if (At(source).device != device && At(source).phase == phase_) NextPhase();
  }
  ASSIGN_OR_RETURN(made.node.layout, InferResult(op, attributes, layouts));
  const OpInfo& info = GetOpInfo(op);
  if (info.is_view || info.writes_source) {
    const Node& shown = At(sources[0]).node;
    made.node.view_root = shown.view_root == kNoNode ? NodeId{AsInt(sources[0])} : shown.view_root;
    made.node.view_offset = shown.view_offset;
    if (const auto* view = std::get_if<ViewAttributes>(&attributes)) {
      made.node.view_offset += view->offset;
    }
  }
  made.node.op = op;
  made.node.attributes = std::move(attributes);
  made.node.layer = like.layer;
  made.node.name = like.name;
  made.device = info.is_view ? At(sources[0]).device : device;
  made.phase = phase_;
  made.position = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(std::move(made));
  return EmittedId{static_cast<int32_t>(nodes_.size()) - 1};
}

void RankNodes::MoveBehind(absl::Span<const EmittedId> moved, absl::Span<const EmittedId> sources) {
  std::pair<int32_t, int32_t> last = {-1, -1};
  for (const EmittedId source : sources) {
    last = std::max(last, {At(source).phase, At(source).position});
  }
  for (const EmittedId id : moved) {
    Emitted& node = nodes_[static_cast<size_t>(id)];
    std::tie(node.phase, node.position) = last;
  }
}

RankNodes::Finished RankNodes::Finish() const {
  std::vector<int32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
    const Emitted& x = nodes_[a];
    const Emitted& y = nodes_[b];
    return std::tie(x.phase, x.device, x.position) < std::tie(y.phase, y.device, y.position);
  });
  Finished finished;
  finished.ids.assign(nodes_.size(), kNoNode);
  for (const int32_t at : order) {
    Node node = nodes_[at].node;
    for (NodeId& source : node.sources) source = finished.ids[Index(source)];
    if (node.view_root != kNoNode) node.view_root = finished.ids[Index(node.view_root)];
    finished.ids[at] = finished.graph.Append(std::move(node));
    finished.devices.push_back(nodes_[at].device);
  }
  return finished;
}

}  // namespace weft
