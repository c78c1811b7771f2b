// Fused ops and their plain forms (decision 11): a fused op is a row of the op table that stands
// for a composition of other rows, and the composition is its oracle.
//
//   norm, rms_norm of (x, weight)   mul(norm(x), weight)
//   glu of (gate, up)               mul(unary(gate), up)
//     swiglu_oai                    mul(mul(x, unary(scale(x))), add(clamp(up), fill)), where x is
//                                   clamp(gate)
//     of one source                 the same over views of its halves
//   scale with a bias               add(scale(x), fill)
//   soft_max with a scale           soft_max(scale(x))
//   add_id                          add(x, get_rows(bias, ids))
//
// A plain form holds no fused op. Reductions (norms without weight, soft_max without scale, mean)
// count as plain: their sums have more digits than a tensor between two nodes would keep.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"
#include "common/graph/graph_builder.h"

namespace weft {

// The ops some of whose nodes have a plain form.
absl::Span<const Op> FusedOps();

// True if the node is a fused op with a plain form. Nodes without elements have none.
bool HasPlainForm(const Node& node);
inline bool HasPlainForm(const Graph& graph, NodeId id) { return HasPlainForm(graph.node(id)); }

// Appends the plain form of node `id` of `graph` to `target` (which may be `graph`), reading
// `sources` (nodes of `target`) where `id` reads its own; returns its last node, which has the
// layout, the name, the layer and the output mark of `id`. The nodes before it are named
// "name (part k)" unless the name is very long. Errors: INVALID_ARGUMENT if `id` has no plain form,
// or if the sources do not fit; `target` is lost if their layouts do not.
absl::StatusOr<NodeId> AppendPlainForm(const Graph& graph, NodeId id,
                                       absl::Span<const NodeId> sources, Graph& target);

// The plain form alone, over leafs (and views of leafs, where a source has gaps) with the layouts
// of the sources: for asking Device::Supports about its nodes. Errors: INVALID_ARGUMENT if `id` has
// no plain form.
absl::StatusOr<Graph> PlainFormOf(const Graph& graph, NodeId id);

// Appends the plain form of a node that has one to what `builder` builds, without names; returns
// its last node. Errors stay in the builder.
NodeId ComposePlainForm(const Node& node, absl::Span<const NodeId> sources, GraphBuilder& builder);

// What a gated unit applies to its gate, if that is all it does beside the product.
std::optional<UnaryKind> GateFunction(GluKind kind);

}  // namespace weft
