#include "coordinator/scheduler/stream_order.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace weft {
namespace {

constexpr int32_t kNothing = -1;  // progress of a stream of which nothing is known

class Orderer {
 public:
  Orderer(const PlanContext& context, const ScheduledGraph& scheduled, bool pipelined)
      : context_(context),
        scheduled_(scheduled),
        pipelined_(pipelined),
        device_count_(context.device_count()),
        split_count_of_(device_count_),
        known_(device_count_, std::vector<int32_t>(device_count_, kNothing)) {}

  StreamOrder Run() {
    for (const ScheduledSplit& split : scheduled_.splits) {
      order_.ordinal.push_back(split_count_of_[split.device]++);
      PlaceSplit(split);
    }
    return std::move(order_);
  }

 private:
  // Memory that several streams may touch: an arena (by the device that owns it) or a leaf.
  static int64_t ArenaKey(int32_t device) { return device; }
  int64_t LeafKey(NodeId leaf) const { return device_count_ + int64_t{Index(leaf)}; }

  struct Access {
    int32_t device = kNoDevice;
    int32_t progress = 0;
  };

  bool IsWeight(NodeId root) const {
    const LeafAttributes* leaf = scheduled_.graph.leaf(root);
    return leaf != nullptr && leaf->kind == LeafKind::kWeight;
  }

  int64_t KeyOf(NodeId id) const {
    const NodeId root = scheduled_.graph.Root(id);
    return scheduled_.graph.IsLeaf(root)
               ? LeafKey(root)
               : ArenaKey(context_.MemoryOf(scheduled_.devices[Index(root)]));
  }

  void PlaceSplit(const ScheduledSplit& split) {
    const int32_t s = static_cast<int32_t>(order_.ordinal.size()) - 1;
    device_ = split.device;
    const int32_t copied = 2 * order_.ordinal.back() + 1;
    const int32_t end = copied + 1;
    order_.waits.emplace_back();
    waits_ = &order_.waits.back();
    const Graph& graph = scheduled_.graph;
    for (const ScheduledCopy& copy : split.copies) {
      if (copy.edge == kNoEdge) NeedValue(graph.node(copy.node).sources[0], s);
      if (copy.ids != kNoNode) NeedValue(copy.ids, s);
    }
    bool writes_arena = !split.copies.empty();
    for (const NodeId id : split.nodes) {
      for (const NodeId source : graph.node(id).sources) NeedValue(source, s);
      if (graph.Root(id) != id) {
        NeedQuiet(KeyOf(id));
      } else {
        writes_arena = true;
      }
    }
    for (const ScheduledSend& send : split.sends) NeedValue(send.node, s);
    if (writes_arena) NeedQuiet(ArenaKey(context_.MemoryOf(device_)));
    known_[device_][device_] = end;
    snapshots_[{device_, copied}] = known_[device_];
    snapshots_[{device_, copied}][device_] = copied;
    snapshots_[{device_, end}] = known_[device_];
    NoteAccesses(split, copied, end);
  }

  void NoteAccesses(const ScheduledSplit& split, int32_t copied, int32_t end) {
    const Graph& graph = scheduled_.graph;
    for (const ScheduledCopy& copy : split.copies) {
      if (copy.edge == kNoEdge) Touch(graph.node(copy.node).sources[0], copied);
      if (copy.ids != kNoNode) Touch(copy.ids, copied);
    }
    for (const NodeId id : split.nodes) {
      for (const NodeId source : graph.node(id).sources) Touch(source, end);
      Touch(id, end);
    }
    for (const ScheduledSend& send : split.sends) Touch(send.node, end);
    if (!split.copies.empty()) TouchKey(ArenaKey(context_.MemoryOf(device_)), end);
  }

  void Touch(NodeId id, int32_t progress) {
    const NodeId root = scheduled_.graph.Root(id);
    if (IsWeight(root)) return;
    const bool foreign =
        context_.MemoryOf(scheduled_.devices[Index(root)]) != context_.MemoryOf(device_);
    // What crosses in a pipelined plan lies in memory of its own, which is not used again.
    if (pipelined_ && foreign && !scheduled_.graph.IsLeaf(root)) return;
    TouchKey(KeyOf(id), progress);
  }

  void TouchKey(int64_t key, int32_t progress) {
    for (Access& access : accesses_[key]) {
      if (access.device != device_) continue;
      access.progress = std::max(access.progress, progress);
      return;
    }
    accesses_[key].push_back({device_, progress});
  }

  // The value of `id` must be there: made by an earlier split of another stream, or put in place by
  // the host on another device.
  void NeedValue(NodeId id, int32_t s) {
    const Graph& graph = scheduled_.graph;
    id = BaseOf(graph, id);
    if (IsWeight(id)) return;
    const int32_t split = scheduled_.split_of[Index(id)];
    const int32_t maker = scheduled_.devices[Index(id)];
    // The stream that owns the memory fills leafs.
    const int32_t from = split < 0 ? context_.MemoryOf(maker) : maker;
    if (from == device_ || split == s) return;
    Need({from, split < 0 ? 0 : 2 * order_.ordinal[split] + 2});
  }

  // Nobody else may still use that memory.
  void NeedQuiet(int64_t key) {
    const auto found = accesses_.find(key);
    if (found == accesses_.end()) return;
    for (const Access& access : found->second) {
      if (access.device != device_) Need({access.device, access.progress});
    }
  }

  void Need(const EventPoint& point) {
    std::vector<int32_t>& known = known_[device_];
    if (known[point.device] >= point.progress) return;
    const auto [event, fresh] =
        event_of_.try_emplace({point.device, point.progress}, order_.events.size());
    if (fresh) order_.events.push_back(point);
    waits_->push_back(static_cast<int32_t>(event->second));
    known[point.device] = point.progress;
    const auto snapshot = snapshots_.find({point.device, point.progress});
    if (snapshot == snapshots_.end()) return;
    for (int32_t d = 0; d < device_count_; ++d) known[d] = std::max(known[d], snapshot->second[d]);
  }

  const PlanContext& context_;
  const ScheduledGraph& scheduled_;
  const bool pipelined_;
  const int32_t device_count_;
  StreamOrder order_;
  std::vector<int32_t> split_count_of_;
  std::vector<std::vector<int32_t>> known_;  // known_[d][e]: progress of e that d is sure of
  absl::flat_hash_map<std::pair<int32_t, int32_t>, std::vector<int32_t>> snapshots_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> event_of_;
  absl::flat_hash_map<int64_t, std::vector<Access>> accesses_;
  int32_t device_ = kNoDevice;  // of the split being placed
  std::vector<int32_t>* waits_ = nullptr;
};

}  // namespace

StreamOrder OrderStreams(const PlanContext& context, const ScheduledGraph& scheduled,
                         bool pipelined) {
  return Orderer(context, scheduled, pipelined).Run();
}

}  // namespace weft
