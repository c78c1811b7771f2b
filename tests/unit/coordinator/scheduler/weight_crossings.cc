#include "tests/unit/coordinator/scheduler/weight_crossings.h"

#include <algorithm>
#include <vector>

#include "common/graph/plain_form.h"

namespace weft {
namespace {

class Finder {
 public:
  Finder(const PlanContext& context, const Plan& plan)
      : input_(context.input()), graph_(context.graph()), plan_(plan) {}

  std::set<std::string> Run() const {
    std::set<std::string> reasons;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!graph_.Executes(NodeId{i})) continue;
      for (const NodeId source : graph_.node(NodeId{i}).sources) {
        const NodeId weight = graph_.Root(source);
        if (!IsWeight(weight) || HostOf(weight) == HostOf(NodeId{i})) continue;
        reasons.insert(Reason(NodeId{i}, weight));
      }
    }
    return reasons;
  }

  bool HasWeightOutside(NodeId id, const std::string& host) const {
    return AnyWeight(id, [&](NodeId weight) { return HasPlace(weight) && HostOf(weight) != host; });
  }

 private:
  const std::string& HostOf(NodeId id) const {
    return input_.devices[plan_.assignments[Index(id)].device]->host();
  }
  bool IsWeight(NodeId root) const {
    const LeafAttributes* leaf = graph_.leaf(root);
    return leaf != nullptr && leaf->kind == LeafKind::kWeight;
  }
  bool HasPlace(NodeId leaf) const { return input_.leafs[Index(leaf)].type != nullptr; }

  // The nodes that make or change the same tensor as `id`.
  std::vector<NodeId> Group(NodeId id) const {
    std::vector<NodeId> group;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_.Executes(NodeId{i}) && graph_.Root(NodeId{i}) == graph_.Root(id)) {
        group.push_back(NodeId{i});
      }
    }
    return group;
  }

  template <typename F>
  bool AnyWeight(NodeId id, F f) const {
    for (const NodeId node : Group(id)) {
      for (const NodeId source : graph_.node(node).sources) {
        if (IsWeight(graph_.Root(source)) && f(graph_.Root(source))) return true;
      }
    }
    return false;
  }

  bool SomeDeviceRuns(const std::vector<NodeId>& nodes, const std::string& host) const {
    return std::any_of(input_.devices.begin(), input_.devices.end(), [&](const Device* device) {
      return device->host() == host && std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) {
               return RunsSomehow(*device, graph_, node);
             });
    });
  }

  std::string Reason(NodeId reader, NodeId weight) const {
    const NodeId root = graph_.Root(reader);
    if (input_.options.disabled.Has(Rule::kWeightHost)) return "the rule is off";
    if (!HasPlace(weight)) return "the weight has no place";
    for (const Pin& pin : input_.pins) {
      if (graph_.Root(pin.node) == root) return "the reader is pinned";
    }
    if (graph_.IsLeaf(root) && HasPlace(root) && HostOf(root) != HostOf(weight)) {
      return "it writes elsewhere";
    }
    const bool decided = AnyWeight(
        reader, [&](NodeId other) { return HasPlace(other) && HostOf(other) == HostOf(reader); });
    if (decided) return "weights of two machines";
    if (!SomeDeviceRuns(Group(reader), HostOf(weight))) return "refused beside the weight";
    return std::string(kNoReason);
  }

  const PlanInput& input_;
  const Graph& graph_;
  const Plan& plan_;
};

}  // namespace

bool RunsSomehow(const Device& device, const Graph& graph, NodeId id) {
  if (device.Supports(graph, id).ok()) return true;
  const auto plain = PlainFormOf(graph, id);
  if (!plain.ok()) return false;
  for (int32_t i = 0; i < plain->size(); ++i) {
    if (plain->Executes(NodeId{i}) && !device.Supports(*plain, NodeId{i}).ok()) return false;
  }
  return true;
}

std::set<std::string> WeightCrossings(const PlanContext& context, const Plan& plan) {
  return Finder(context, plan).Run();
}

bool HasWeightElsewhere(const PlanContext& context, const Plan& plan, NodeId id, int32_t device) {
  return Finder(context, plan).HasWeightOutside(id, context.input().devices[device]->host());
}

}  // namespace weft
