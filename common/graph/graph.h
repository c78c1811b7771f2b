// A computation as a value: nodes in an order where every source precedes its user. Copyable,
// comparable, hashable; knows no device. Built by GraphBuilder, checked by VerifyGraph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/graph/op.h"
#include "common/graph/op_attributes.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// Identity of a tensor inside one graph: its position. Names are only for people.
enum class NodeId : int32_t {};
inline constexpr NodeId kNoNode{-1};
constexpr int32_t Index(NodeId id) { return static_cast<int32_t>(id); }

struct Node {
  Op op = Op::kLeaf;
  OpAttributes attributes;
  absl::InlinedVector<NodeId, 4> sources;
  TensorLayout layout;
  // For views and ops that write their source: the root tensor whose memory this is, and the bytes
  // from its start.
  NodeId view_root = kNoNode;
  int64_t view_offset = 0;
  bool output = false;  // must survive to the end of the step
  int32_t layer = -1;   // which layer of the model, -1: none; for placement rules and reports
  std::string name;

  friend bool operator==(const Node&, const Node&) = default;
};

class Graph {
 public:
  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  absl::Span<const Node> nodes() const { return nodes_; }
  const TensorLayout& layout(NodeId id) const { return node(id).layout; }

  // The tensor that owns the memory of `id`: its view root, or itself.
  NodeId Root(NodeId id) const { return node(id).view_root == kNoNode ? id : node(id).view_root; }
  bool IsLeaf(NodeId id) const { return node(id).op == Op::kLeaf; }
  // Null unless `id` is a leaf.
  const LeafAttributes* leaf(NodeId id) const {
    return std::get_if<LeafAttributes>(&node(id).attributes);
  }
  // True for nodes that a step executes (neither leafs nor views), on a device or by a command.
  bool Executes(NodeId id) const { return !IsLeaf(id) && !GetOpInfo(node(id).op).is_view; }

  // Layouts of the sources of `id`, in order.
  absl::InlinedVector<TensorLayout, 4> SourceLayouts(NodeId id) const;

  // Appends without checks; for GraphBuilder and decoders, which verify afterwards.
  NodeId Append(Node node) {
    nodes_.push_back(std::move(node));
    return NodeId{size() - 1};
  }
  Node& mutable_node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }

  friend bool operator==(const Graph&, const Graph&) = default;

 private:
  std::vector<Node> nodes_;
};

// Of a collective; else null.
const CollectiveKey* CollectiveKeyOf(const Node& node);

// Checks a graph as if an enemy wrote it: ops known, arity and attribute types right, sources
// earlier, layouts equal to what the table infers, views inside their roots, leaf ids in range,
// those of weights and caches unique, sizes within int64_t. Errors: INVALID_ARGUMENT "node 12
// (mul_mat 'blk.0.q'):
// ...".
absl::Status VerifyGraph(const Graph& graph);

// One line per node: "%12 = mul_mat(%3, %11) : F32 [64, 7]  'blk.0.q'". Stable; for dumps and
// golden files.
std::string GraphText(const Graph& graph);

// "node 12 (mul_mat 'blk.0.q')", for error texts; at most 64 characters of the name. The op may be
// unknown.
std::string NodeText(const Graph& graph, NodeId id);

// What node `id` costs by the op table.
OpCost NodeCost(const Graph& graph, NodeId id);

}  // namespace weft
