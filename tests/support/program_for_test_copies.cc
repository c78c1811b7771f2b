// Copies wherever a node reads what its device cannot reach.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/support/program_for_test.h"

namespace weft {
namespace {

class CopyInserter {
 public:
  CopyInserter(const Graph& graph, const std::vector<int32_t>& devices,
               const MachineForTest& machine)
      : graph_(graph), machine_(machine) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      devices_.push_back(DeviceForTest(graph, devices, machine, NodeId{i}));
    }
  }

  PlacedGraph Insert() && {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      Node node = graph_.node(NodeId{i});
      const bool shares = node.view_root != kNoNode;  // memory with its first source
      for (size_t k = 0; k < node.sources.size(); ++k) {
        node.sources[k] = k == 0 && shares ? result_.node_of[Index(node.sources[0])]
                                           : On(devices_[i], node.sources[k]);
      }
      if (shares) node.view_root = result_.node_of[Index(node.view_root)];
      result_.node_of.push_back(Append(std::move(node), devices_[i]));
    }
    return std::move(result_);
  }

 private:
  NodeId Append(Node node, int32_t device) {
    result_.devices.push_back(device);
    return result_.graph.Append(std::move(node));
  }

  NodeId Copy(NodeId source, int32_t device) {
    Node node;
    node.op = Op::kCopy;
    node.attributes = CopyAttributes{result_.graph.layout(source).dtype};
    node.sources = {source};
    node.layout =
        *PackedLayout(result_.graph.layout(source).dtype, result_.graph.layout(source).ne);
    node.name = absl::StrCat("replica of ", Index(source));
    return Append(std::move(node), device);
  }

  bool IsLeafOf(NodeId id, LeafKind kind) const {
    const LeafAttributes* leaf = graph_.leaf(id);
    return leaf != nullptr && leaf->kind == kind;
  }

  bool Reaches(int32_t device, NodeId id, int32_t home) const {
    if (home == device) return true;
    if (machine_.overlap && !IsLeafOf(graph_.Root(id), LeafKind::kWeight)) return false;
    const std::vector<int32_t>& memories = machine_.devices[device].memories;
    return std::find(memories.begin(), memories.end(), home) != memories.end();
  }

  // The tensor that shows node `id` of the old graph to readers on `device`.
  NodeId On(int32_t device, NodeId id) {
    const int32_t home = machine_.devices[devices_[Index(graph_.Root(id))]].memories[0];
    if (Reaches(device, id, home)) return result_.node_of[Index(id)];
    const int32_t memory = machine_.devices[device].memories[0];
    const auto [found, fresh] = replicas_.try_emplace({Index(id), memory}, kNoNode);
    if (fresh) found->second = Replica(device, home, id);
    return found->second;
  }

  NodeId Replica(int32_t device, int32_t home, NodeId id) {
    NodeId here = result_.node_of[Index(id)];
    // The host fills inputs and page tables wherever they are.
    const bool filled = IsLeafOf(id, LeafKind::kInput) || IsLeafOf(id, LeafKind::kPageTable);
    if (filled && machine_.overlap) {
      return Append(graph_.node(id), machine_.devices[device].memories[0]);
    }
    const NodeId root = graph_.Root(id);
    const bool elsewhere = graph_.IsLeaf(root) && !IsLeafOf(root, LeafKind::kWeight);
    if (!IsContiguous(result_.graph.layout(here)) || (elsewhere && machine_.overlap)) {
      here = Copy(here, home);
    }
    return Copy(here, device);
  }

  const Graph& graph_;
  const MachineForTest& machine_;
  std::vector<int32_t> devices_;
  PlacedGraph result_;
  std::map<std::pair<int32_t, int32_t>, NodeId> replicas_;  // by node and memory
};

}  // namespace

PlacedGraph InsertCopies(const Graph& graph, const std::vector<int32_t>& devices,
                         const MachineForTest& machine) {
  WEFT_CHECK(static_cast<int32_t>(devices.size()) == graph.size());
  return CopyInserter(graph, devices, machine).Insert();
}

PlacedGraph InsertCopies(const Graph& graph, const std::vector<int32_t>& devices) {
  int32_t count = 1;
  for (const int32_t device : devices) count = std::max(count, device + 1);
  return InsertCopies(graph, devices, SeparateMachine(count));
}

}  // namespace weft
