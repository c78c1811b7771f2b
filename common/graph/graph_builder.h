// The way to make graphs: every call checks its operands by the op table and appends one node.
//
// Errors are sticky: after the first failure the builder adds nothing, later calls return kNoNode,
// and Finish reports the first error with the name of the node. So a model builder reads as plain
// formulas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/graph.h"

namespace weft {

class GraphBuilder {
 public:
  GraphBuilder() = default;
  // Goes on with a graph that is legal so far.
  explicit GraphBuilder(Graph graph) : graph_(std::move(graph)) {}

  // --- Leafs ---
  NodeId Leaf(LeafKind kind, int32_t id, DType dtype, const Extents& ne, std::string_view name);

  // --- Views ---
  // `offset` bytes into x with the given extents; strides nb[1..3] in bytes, rows contiguous.
  NodeId View(NodeId x, const Extents& ne, const Extents& nb, int64_t offset);
  NodeId Reshape(NodeId x, const Extents& ne);
  NodeId Permute(NodeId x, std::array<int32_t, 4> axes);
  NodeId Transpose(NodeId x);

  // --- Data movement ---
  NodeId Copy(NodeId x, DType dtype);
  NodeId Contiguous(NodeId x);  // x itself if it is contiguous already
  NodeId Concat(NodeId a, NodeId b, int32_t axis);
  NodeId Repeat(NodeId x, const Extents& ne);
  // rows of table [n, m, b2, b3] by ids I32 [r, b2, b3] -> F32 [n, r, b2, b3]; a negative id gives
  // zeros.
  NodeId GetRows(NodeId table, NodeId ids);

  // --- Element by element (b repeats to a) ---
  NodeId Add(NodeId a, NodeId b) { return Make(Op::kAdd, {}, {a, b}); }
  NodeId Sub(NodeId a, NodeId b) { return Make(Op::kSub, {}, {a, b}); }
  NodeId Mul(NodeId a, NodeId b) { return Make(Op::kMul, {}, {a, b}); }
  NodeId Div(NodeId a, NodeId b) { return Make(Op::kDiv, {}, {a, b}); }
  // x[:, s, t] + bias[:, ids[s, t]]
  NodeId AddId(NodeId x, NodeId bias, NodeId ids) { return Make(Op::kAddId, {}, {x, bias, ids}); }
  NodeId Scale(NodeId x, float factor, float bias = 0);
  NodeId Clamp(NodeId x, float low, float high);
  NodeId Unary(NodeId x, UnaryKind kind);
  NodeId Glu(NodeId gate, NodeId up, GluAttributes attributes);
  NodeId Swiglu(NodeId gate, NodeId up) { return Glu(gate, up, GluAttributes{}); }

  // --- Along rows ---
  // Shapes: x [n, ...] F32; weight [n] F32 or kNoNode. Source: Zhang and Sennrich 2019,
  // arXiv:1910.07467.
  NodeId RmsNorm(NodeId x, NodeId weight, float epsilon);
  NodeId SoftMax(NodeId x, float scale = 1);
  NodeId SumRows(NodeId x) { return Make(Op::kSumRows, {}, {x}); }
  // Ids of the k largest of each row, descending, ties to the lower id; I32 [k, T]. `positions` I32
  // [T] or kNoNode: rows of a negative position get ids -1 (padding routes to no expert, decision
  // 14).
  NodeId TopK(NodeId x, int32_t k, NodeId positions);
  // Of each row of logits [V, R] the best k ids and what a sampler needs to know of the others,
  // packed as common/graph/candidate_layout.h says, F32 [words, R]. `changed` I32 [C, R] or
  // kNoNode: ids whose logits the sampler will change; those that are not in the row are ignored.
  // The row holds the ids from first_id on.
  NodeId SampleCandidates(NodeId logits, NodeId changed, int32_t k, int32_t first_id = 0);

  // --- Products ---
  // C[i, j] = sum over k of a[k, i] * b[k, j]; a repeats over the batch dimensions of b by division
  // (spec 0.2).
  NodeId MulMat(NodeId a, NodeId b) { return Make(Op::kMulMat, {}, {a, b}); }
  // a [k, m, E], b [k, u or 1, T], ids I32 [u, T] -> [m, u, T]; a negative id gives zeros.
  NodeId MulMatId(NodeId a, NodeId b, NodeId ids) { return Make(Op::kMulMatId, {}, {a, b, ids}); }

  // --- Attention ---
  // x [head, n_head, T], positions I32 [T] ([4 * T] for the section kinds), factors F32 [dimensions
  // / 2] or kNoNode.
  NodeId Rope(NodeId x, NodeId positions, NodeId factors, const RopeAttributes& attributes);
  // Writes rows [head, n_head_kv, T] at slots I32 [T] (page * 16 + place) of pages [head, 16,
  // n_head_kv, n_pages]; returns the pages as a tensor to read after the write.
  NodeId KvStore(NodeId pages, NodeId rows, NodeId slots);
  // q [head, n_head, T] F32; table I32 [pages per sequence, sequence slots]; sequence, positions
  // I32 [T]; sinks, slopes F32 [n_head] or kNoNode -> [value head, n_head, T]. `value_pages` is
  // kNoNode for MLA.
  NodeId PagedAttention(NodeId q, NodeId key_pages, NodeId value_pages, NodeId table,
                        NodeId sequence, NodeId positions, NodeId sinks, NodeId slopes,
                        PagedAttentionAttributes attributes);

  // Any op of the table. kNoNode sources are left out.
  NodeId Make(Op op, OpAttributes attributes, std::initializer_list<NodeId> sources);

  // Names the node (for people and error texts) and returns it.
  NodeId Name(NodeId id, std::string_view name);
  void MarkOutput(NodeId id);
  // Nodes added from here on belong to this layer.
  void set_layer(int32_t layer) { layer_ = layer; }

  const TensorLayout& layout(NodeId id) const;
  const Graph& graph() const { return graph_; }
  // Records an error of the caller's own, as if an op had failed.
  void Fail(absl::Status status);

  // The graph, or the first error.
  absl::StatusOr<Graph> Finish() &&;

 private:
  Graph graph_;
  absl::Status status_;
  int32_t layer_ = -1;
};

}  // namespace weft
