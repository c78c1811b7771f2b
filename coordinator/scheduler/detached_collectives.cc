#include "coordinator/scheduler/detached_collectives.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace weft {
namespace {

class Finder {
 public:
  Finder(const PlanContext& context, const ScheduledGraph& scheduled)
      : context_(context), scheduled_(scheduled), graph_(scheduled.graph) {
    for (const ScheduledSplit& split : scheduled.splits) {
      for (const ScheduledCopy& copy : split.copies) {
        for (const NodeId source : graph_.node(copy.node).sources) leaving_.insert(Root(source));
      }
      for (const ScheduledSend& send : split.sends) leaving_.insert(Root(send.node));
    }
    for (const NodeId id : context.input().options.observed) observed_.insert(id);
  }

  std::vector<DetachedCollective> Find() const {
    std::vector<DetachedCollective> found;
    for (size_t s = 0; s < scheduled_.splits.size(); ++s) {
      if (SharesMemory(scheduled_.splits[s].device)) continue;
      for (const NodeId id : scheduled_.splits[s].nodes) {
        if (!IsCollective(graph_.node(id).op) || !StaysHere(id)) continue;
        const int32_t split = ReaderAfterWork(id, s);
        if (split >= 0) found.push_back({id, split});
      }
    }
    return found;
  }

 private:
  NodeId Root(NodeId id) const { return graph_.Root(id); }

  bool SharesMemory(int32_t device) const {
    for (int32_t d = 0; d < context_.device_count(); ++d) {
      if (d != device && context_.MemoryOf(d) == context_.MemoryOf(device)) return true;
    }
    return false;
  }

  bool StaysHere(NodeId id) const {
    const auto& sources = graph_.node(id).sources;
    return !observed_.contains(scheduled_.origin[Index(id)]) && !leaving_.contains(id) &&
           std::none_of(sources.begin(), sources.end(),
                        [this](NodeId source) { return leaving_.contains(Root(source)); });
  }

  bool Reads(const ScheduledSplit& split, NodeId tensor) const {
    return std::any_of(split.nodes.begin(), split.nodes.end(), [&](NodeId id) {
      const auto& sources = graph_.node(id).sources;
      return std::any_of(sources.begin(), sources.end(),
                         [&](NodeId source) { return Root(source) == tensor; });
    });
  }

  bool Computes(const ScheduledSplit& split) const {
    return std::any_of(split.nodes.begin(), split.nodes.end(),
                       [this](NodeId id) { return !IsCollective(graph_.node(id).op); });
  }

  // -1: nothing to compute comes first, or no later split reads it.
  int32_t ReaderAfterWork(NodeId id, size_t at) const {
    bool work = false;
    for (size_t s = at + 1; s < scheduled_.splits.size(); ++s) {
      const ScheduledSplit& split = scheduled_.splits[s];
      if (split.device != scheduled_.splits[at].device) continue;
      if (Reads(split, id)) return work ? static_cast<int32_t>(s) : -1;
      work = work || Computes(split);
    }
    return -1;
  }

  const PlanContext& context_;
  const ScheduledGraph& scheduled_;
  const Graph& graph_;
  absl::flat_hash_set<NodeId> leaving_;  // roots that are copied or sent to other devices
  absl::flat_hash_set<NodeId> observed_;
};

}  // namespace

std::vector<DetachedCollective> FindDetached(const PlanContext& context,
                                             const ScheduledGraph& scheduled) {
  if (context.input().options.overlap != OverlapPolicy::kOn) return {};
  return Finder(context, scheduled).Find();
}

}  // namespace weft
