// The rules that a graph must keep, whoever made it. Workers run this on every graph that arrives.
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/graph.h"

namespace weft {
namespace {

absl::Status CheckLeaf(const Node& node, std::set<std::pair<LeafKind, int32_t>>& seen) {
  const auto* leaf = std::get_if<LeafAttributes>(&node.attributes);
  if (leaf == nullptr || !node.sources.empty()) {
    return absl::InvalidArgumentError("a leaf has leaf attributes and no sources");
  }
  if (leaf->kind > LeafKind::kPageTable || leaf->id < 0) {
    return absl::InvalidArgumentError(absl::StrCat("leaf id ", leaf->id));
  }
  // The host fills inputs and page tables: a copy on another device is a leaf of the same id. What
  // is bound from outside is one tensor.
  const bool bound = leaf->kind == LeafKind::kWeight || leaf->kind == LeafKind::kCache;
  if (bound && !seen.emplace(leaf->kind, leaf->id).second) {
    return absl::InvalidArgumentError(absl::StrCat("leaf id ", leaf->id, " is used twice"));
  }
  ASSIGN_OR_RETURN(const TensorLayout packed, PackedLayout(node.layout.dtype, node.layout.ne));
  if (packed != node.layout) return absl::InvalidArgumentError("a leaf is packed");
  if (node.view_root != kNoNode || node.view_offset != 0) {
    return absl::InvalidArgumentError("a leaf is not a view");
  }
  return absl::OkStatus();
}

// A view (or an op that writes its source) lies inside the tensor that owns the memory.
absl::Status CheckView(const Graph& graph, const Node& node) {
  const NodeId source = node.sources[0];
  int64_t offset = graph.node(source).view_offset;
  if (const auto* view = std::get_if<ViewAttributes>(&node.attributes)) {
    const std::optional<int64_t> sum = CheckedAdd(offset, view->offset);
    if (!sum) return absl::InvalidArgumentError("offset overflows");
    offset = *sum;
  }
  if (node.view_root != graph.Root(source) || node.view_offset != offset) {
    return absl::InvalidArgumentError("wrong view root or offset");
  }
  const std::optional<int64_t> extent = ByteExtent(node.layout);
  const std::optional<int64_t> end = extent ? CheckedAdd(offset, *extent) : std::nullopt;
  const std::optional<int64_t> available = ByteExtent(graph.layout(node.view_root));
  if (!end || !available || *end > *available) {
    return absl::InvalidArgumentError("view leaves its root");
  }
  return absl::OkStatus();
}

absl::Status CheckNode(const Graph& graph, NodeId id,
                       std::set<std::pair<LeafKind, int32_t>>& leafs) {
  const Node& node = graph.node(id);
  if (static_cast<int>(node.op) >= kOpCount) return absl::InvalidArgumentError("unknown op");
  if (static_cast<int>(node.layout.dtype) >= kDTypeCount) {
    return absl::InvalidArgumentError("unknown type");
  }
  if (node.op == Op::kLeaf) return CheckLeaf(node, leafs);
  if (node.sources.size() > static_cast<size_t>(kMaxSources)) {
    return absl::InvalidArgumentError(absl::StrCat(node.sources.size(), " sources"));
  }
  for (const NodeId source : node.sources) {
    if (Index(source) < 0 || Index(source) >= Index(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("source ", Index(source), " does not precede it"));
    }
  }
  ASSIGN_OR_RETURN(const TensorLayout inferred,
                   InferResult(node.op, node.attributes, graph.SourceLayouts(id)));
  if (inferred != node.layout) {
    return absl::InvalidArgumentError(absl::StrCat("layout is ", LayoutText(node.layout),
                                                   ", the op gives ", LayoutText(inferred)));
  }
  const OpInfo& info = GetOpInfo(node.op);
  if (info.is_view || info.writes_source) return CheckView(graph, node);
  if (node.view_root != kNoNode || node.view_offset != 0) {
    return absl::InvalidArgumentError("is not a view but has a root");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyGraph(const Graph& graph) {
  std::set<std::pair<LeafKind, int32_t>> leafs;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const absl::Status status = CheckNode(graph, NodeId{i}, leafs);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(NodeText(graph, NodeId{i}), ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace weft
