#include "common/graph/plain_form.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr size_t kMaxExtendedName = 200;  // programs allow 256 bytes

constexpr Op kFusedOps[] = {Op::kAddId, Op::kScale,   Op::kGlu,
                            Op::kNorm,  Op::kRmsNorm, Op::kSoftMax};

NodeId AddConstant(GraphBuilder& builder, NodeId x, float value) {
  return builder.Add(x, builder.Make(Op::kFill, FillAttributes{{1, 1, 1, 1}, value}, {}));
}

// The first or second half of each row.
NodeId Half(GraphBuilder& builder, NodeId x, bool second) {
  const TensorLayout layout = builder.layout(x);
  Extents ne = layout.ne;
  ne[0] /= 2;
  return builder.View(x, ne, layout.nb, second ? ne[0] * layout.nb[0] : 0);
}

NodeId ComposeGlu(const GluAttributes& glu, absl::Span<const NodeId> sources,
                  GraphBuilder& builder) {
  const bool halves = sources.size() == 1;
  const NodeId gate = halves ? Half(builder, sources[0], glu.swapped) : sources[0];
  const NodeId up = halves ? Half(builder, sources[0], !glu.swapped) : sources[1];
  const std::optional<UnaryKind> function = GateFunction(glu.kind);
  if (function) return builder.Mul(builder.Unary(gate, *function), up);
  const NodeId x = builder.Clamp(gate, -std::numeric_limits<float>::infinity(), glu.limit);
  const NodeId share = builder.Unary(builder.Scale(x, glu.alpha), UnaryKind::kSigmoid);
  const NodeId gated = builder.Mul(x, share);
  const NodeId y = builder.Clamp(up, -glu.limit, glu.limit);
  return builder.Mul(gated, AddConstant(builder, y, 1));
}

NodeId ComposeAddId(absl::Span<const NodeId> sources, GraphBuilder& builder) {
  const NodeId x = sources[0];
  const NodeId ids = builder.Contiguous(sources[2]);
  const NodeId list = builder.Reshape(ids, {ElementCount(builder.layout(sources[2])), 1, 1, 1});
  const NodeId rows = builder.GetRows(sources[1], list);
  return builder.Add(x, builder.Reshape(rows, builder.layout(x).ne));
}

// A leaf, or a view of one, with the layout of `source`.
NodeId AppendStandIn(const Graph& graph, NodeId source, int32_t leaf_id, GraphBuilder& builder) {
  const Node& node = graph.node(source);
  const LeafAttributes* leaf = graph.leaf(source);
  const LeafKind kind = leaf == nullptr ? LeafKind::kInput : leaf->kind;
  const TensorLayout& layout = node.layout;
  const absl::StatusOr<TensorLayout> packed = PackedLayout(layout.dtype, layout.ne);
  if (packed.ok() && *packed == layout) {
    return builder.Leaf(kind, leaf_id, layout.dtype, layout.ne, node.name);
  }
  const DTypeInfo& dtype = GetDTypeInfo(layout.dtype);
  const int64_t blocks = ByteExtent(layout).value_or(0) / dtype.block_bytes;
  const NodeId memory = builder.Leaf(kind, leaf_id, layout.dtype,
                                     {blocks * dtype.block_elements, 1, 1, 1}, node.name);
  return builder.View(memory, layout.ne, layout.nb, 0);
}

NodeId AppendNamed(const Node& node, absl::Span<const NodeId> sources, GraphBuilder& builder) {
  int32_t part = builder.graph().size();
  builder.set_layer(node.layer);
  const NodeId result = ComposePlainForm(node, sources, builder);
  const bool longer = node.name.size() <= kMaxExtendedName;
  for (int32_t k = 1; part < Index(result); ++part, ++k) {
    builder.Name(NodeId{part}, longer ? absl::StrCat(node.name, " (part ", k, ")") : node.name);
  }
  builder.Name(result, node.name);
  if (node.output) builder.MarkOutput(result);
  return result;
}

absl::Status NoPlainForm(const std::string& text, size_t sources) {
  return absl::InvalidArgumentError(
      absl::StrCat(text, ": no plain form over ", sources, " sources"));
}

}  // namespace

absl::Span<const Op> FusedOps() { return kFusedOps; }

bool HasPlainForm(const Node& node) {
  if (ElementCount(node.layout) == 0) return false;
  switch (node.op) {
    case Op::kNorm:
    case Op::kRmsNorm:
      return node.sources.size() == 2;
    case Op::kScale:
      return std::get<ScaleAttributes>(node.attributes).bias != 0;
    case Op::kSoftMax:
      return std::get<SoftMaxAttributes>(node.attributes).scale != 1;
    default:
      return node.op == Op::kGlu || node.op == Op::kAddId;
  }
}

std::optional<UnaryKind> GateFunction(GluKind kind) {
  switch (kind) {
    case GluKind::kSwiglu:
      return UnaryKind::kSilu;
    case GluKind::kGeglu:
      return UnaryKind::kGelu;
    case GluKind::kReglu:
      return UnaryKind::kRelu;
    case GluKind::kSwigluOai:
      break;
  }
  return std::nullopt;
}

NodeId ComposePlainForm(const Node& node, absl::Span<const NodeId> sources, GraphBuilder& builder) {
  switch (node.op) {
    case Op::kNorm:
    case Op::kRmsNorm:
      return builder.Mul(builder.Make(node.op, node.attributes, {sources[0]}), sources[1]);
    case Op::kGlu:
      return ComposeGlu(std::get<GluAttributes>(node.attributes), sources, builder);
    case Op::kScale: {
      const auto& scale = std::get<ScaleAttributes>(node.attributes);
      const NodeId x = scale.factor == 1 ? sources[0] : builder.Scale(sources[0], scale.factor);
      return AddConstant(builder, x, scale.bias);
    }
    case Op::kSoftMax: {
      const auto& soft_max = std::get<SoftMaxAttributes>(node.attributes);
      return builder.SoftMax(builder.Scale(sources[0], soft_max.scale));
    }
    case Op::kAddId:
      return ComposeAddId(sources, builder);
    default:
      builder.Fail(absl::InternalError("a node without a plain form"));
      return kNoNode;
  }
}

absl::StatusOr<NodeId> AppendPlainForm(const Graph& graph, NodeId id,
                                       absl::Span<const NodeId> sources, Graph& target) {
  // `graph` may be `target`, which moves and grows.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Node node = graph.node(id);
  const std::string text = NodeText(graph, id);
  bool fits = HasPlainForm(node) && sources.size() == node.sources.size();
  for (const NodeId source : sources) {
    fits = fits && Index(source) >= 0 && Index(source) < target.size();
  }
  if (!fits) return NoPlainForm(text, sources.size());
  GraphBuilder builder(std::move(target));
  const NodeId result = AppendNamed(node, sources, builder);
  absl::StatusOr<Graph> plain = std::move(builder).Finish();
  if (!plain.ok() || plain->layout(result) != node.layout) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, ": its plain form does not fit the sources ", plain.status().message()));
  }
  target = *std::move(plain);
  return result;
}

absl::StatusOr<Graph> PlainFormOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!HasPlainForm(node)) return NoPlainForm(NodeText(graph, id), node.sources.size());
  GraphBuilder builder;
  absl::InlinedVector<NodeId, 4> sources;
  for (size_t i = 0; i < node.sources.size(); ++i) {
    size_t first = 0;  // one leaf for one tensor, however often it is read
    while (node.sources[first] != node.sources[i]) ++first;
    const auto leaf_id = static_cast<int32_t>(i);
    sources.push_back(first < i ? sources[first]
                                : AppendStandIn(graph, node.sources[i], leaf_id, builder));
  }
  AppendNamed(node, sources, builder);
  return std::move(builder).Finish();
}

}  // namespace weft
