#include "coordinator/explain/layer_groups.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// True if [a, a + count) and [b, b + count) do the same in the same places.
bool SameNodes(const std::vector<ExplainNode>& nodes, int32_t a, int32_t b, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const ExplainNode& x = nodes[a + i];
    const ExplainNode& y = nodes[b + i];
    if (x.op != y.op || x.device != y.device || x.cause != y.cause || x.plain != y.plain) {
      return false;
    }
  }
  return true;
}

std::vector<NodeRun> RunsOf(const std::vector<ExplainNode>& nodes, int32_t begin, int32_t end) {
  std::vector<NodeRun> runs;
  for (int32_t i = begin; i < end; ++i) {
    if (runs.empty() || nodes[i].device != runs.back().device) {
      runs.push_back({nodes[i].device, i, i});
    }
    runs.back().end = i + 1;
  }
  return runs;
}

}  // namespace

std::vector<LayerGroup> GroupLayers(const ExplainPhase& phase) {
  const std::vector<ExplainNode>& nodes = phase.nodes;
  const auto count = static_cast<int32_t>(nodes.size());
  std::vector<LayerGroup> groups;
  for (int32_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin;
    while (end < count && nodes[end].layer == nodes[begin].layer) ++end;
    const int32_t layer = nodes[begin].layer;
    if (!groups.empty() && layer >= 0 && groups.back().last_layer == layer - 1) {
      const std::vector<NodeRun>& runs = groups.back().runs;
      const int32_t size = runs.back().end - runs.front().begin;
      if (size == end - begin && SameNodes(nodes, runs.front().begin, begin, size)) {
        groups.back().last_layer = layer;
        continue;
      }
    }
    groups.push_back({layer, layer, RunsOf(nodes, begin, end)});
  }
  return groups;
}

std::string LayerGroupName(const LayerGroup& group, bool first) {
  if (group.first_layer < 0) return first ? "input" : "output";
  if (group.first_layer == group.last_layer) return absl::StrCat("blk.", group.first_layer);
  return absl::StrCat("blk.", group.first_layer, "..", group.last_layer, " (",
                      group.last_layer - group.first_layer + 1, " layers)");
}

}  // namespace weft
