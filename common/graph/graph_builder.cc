#include "common/graph/graph_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/check.h"

namespace weft {

void GraphBuilder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

NodeId GraphBuilder::Leaf(LeafKind kind, int32_t id, DType dtype, const Extents& ne,
                          std::string_view name) {
  if (!status_.ok()) return kNoNode;
  absl::StatusOr<TensorLayout> layout = PackedLayout(dtype, ne);
  if (!layout.ok()) {
    Fail(absl::InvalidArgumentError(absl::StrCat(AbslView(name), ": ", layout.status().message())));
    return kNoNode;
  }
  Node node;
  node.attributes = LeafAttributes{kind, id};
  node.layout = *layout;
  node.layer = layer_;
  node.name = std::string(name);
  return graph_.Append(std::move(node));
}

NodeId GraphBuilder::Make(Op op, OpAttributes attributes, std::initializer_list<NodeId> sources) {
  if (!status_.ok()) return kNoNode;
  Node node;
  node.op = op;
  node.attributes = std::move(attributes);
  node.layer = layer_;
  absl::InlinedVector<TensorLayout, 4> layouts;
  for (const NodeId source : sources) {
    if (source == kNoNode) continue;
    WEFT_CHECK(Index(source) >= 0 && Index(source) < graph_.size());
    node.sources.push_back(source);
    layouts.push_back(graph_.layout(source));
  }
  absl::StatusOr<TensorLayout> layout = InferResult(op, node.attributes, layouts);
  if (!layout.ok()) {
    std::string names;
    for (const NodeId source : node.sources) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", graph_.node(source).name);
    }
    Fail(absl::InvalidArgumentError(
        absl::StrCat(layout.status().message(), " (sources: ", names, ")")));
    return kNoNode;
  }
  node.layout = *layout;
  const OpInfo& info = GetOpInfo(op);
  if (info.is_view || info.writes_source) {
    const Node& source = graph_.node(node.sources[0]);
    node.view_root = graph_.Root(node.sources[0]);
    node.view_offset = source.view_offset;
    if (const auto* view = std::get_if<ViewAttributes>(&node.attributes)) {
      node.view_offset += view->offset;
    }
  }
  return graph_.Append(std::move(node));
}

NodeId GraphBuilder::View(NodeId x, const Extents& ne, const Extents& nb, int64_t offset) {
  return Make(Op::kView, ViewAttributes{ne, nb, offset}, {x});
}

NodeId GraphBuilder::Reshape(NodeId x, const Extents& ne) {
  return Make(Op::kReshape, ReshapeAttributes{ne}, {x});
}

NodeId GraphBuilder::Permute(NodeId x, std::array<int32_t, 4> axes) {
  return Make(Op::kPermute, PermuteAttributes{axes}, {x});
}

NodeId GraphBuilder::Transpose(NodeId x) { return Make(Op::kTranspose, NoAttributes{}, {x}); }

NodeId GraphBuilder::Copy(NodeId x, DType dtype) {
  return Make(Op::kCopy, CopyAttributes{dtype}, {x});
}

NodeId GraphBuilder::Contiguous(NodeId x) {
  if (!status_.ok() || IsContiguous(layout(x))) return x;
  return Copy(x, layout(x).dtype);
}

NodeId GraphBuilder::Concat(NodeId a, NodeId b, int32_t axis) {
  return Make(Op::kConcat, AxisAttributes{axis}, {a, b});
}

NodeId GraphBuilder::Repeat(NodeId x, const Extents& ne) {
  return Make(Op::kRepeat, RepeatAttributes{ne}, {x});
}

NodeId GraphBuilder::GetRows(NodeId table, NodeId ids) {
  return Make(Op::kGetRows, GetRowsAttributes{}, {table, ids});
}

NodeId GraphBuilder::Scale(NodeId x, float factor, float bias) {
  return Make(Op::kScale, ScaleAttributes{factor, bias}, {x});
}

NodeId GraphBuilder::Clamp(NodeId x, float low, float high) {
  return Make(Op::kClamp, ClampAttributes{low, high}, {x});
}

NodeId GraphBuilder::Unary(NodeId x, UnaryKind kind) {
  return Make(Op::kUnary, UnaryAttributes{kind}, {x});
}

NodeId GraphBuilder::Glu(NodeId gate, NodeId up, GluAttributes attributes) {
  return Make(Op::kGlu, attributes, {gate, up});
}

NodeId GraphBuilder::RmsNorm(NodeId x, NodeId weight, float epsilon) {
  return Make(Op::kRmsNorm, NormAttributes{epsilon}, {x, weight});
}

NodeId GraphBuilder::SoftMax(NodeId x, float scale) {
  return Make(Op::kSoftMax, SoftMaxAttributes{scale}, {x});
}

NodeId GraphBuilder::TopK(NodeId x, int32_t k, NodeId positions) {
  return Make(Op::kTopK, TopKAttributes{k}, {x, positions});
}

NodeId GraphBuilder::SampleCandidates(NodeId logits, NodeId changed, int32_t k, int32_t first_id) {
  return Make(Op::kSampleCandidates, SampleCandidatesAttributes{k, first_id}, {logits, changed});
}

NodeId GraphBuilder::Rope(NodeId x, NodeId positions, NodeId factors,
                          const RopeAttributes& attributes) {
  return Make(Op::kRope, attributes, {x, positions, factors});
}

NodeId GraphBuilder::KvStore(NodeId pages, NodeId rows, NodeId slots) {
  return Make(Op::kKvStore, NoAttributes{}, {pages, rows, slots});
}

NodeId GraphBuilder::PagedAttention(NodeId q, NodeId key_pages, NodeId value_pages, NodeId table,
                                    NodeId sequence, NodeId positions, NodeId sinks, NodeId slopes,
                                    PagedAttentionAttributes attributes) {
  attributes.has_sinks = sinks != kNoNode;
  attributes.has_slopes = slopes != kNoNode;
  return Make(Op::kPagedAttention, attributes,
              {q, key_pages, value_pages, table, sequence, positions, sinks, slopes});
}

NodeId GraphBuilder::Name(NodeId id, std::string_view name) {
  if (status_.ok() && id != kNoNode) graph_.mutable_node(id).name = std::string(name);
  return id;
}

void GraphBuilder::MarkOutput(NodeId id) {
  if (status_.ok() && id != kNoNode) graph_.mutable_node(id).output = true;
}

const TensorLayout& GraphBuilder::layout(NodeId id) const {
  WEFT_CHECK(id != kNoNode);
  return graph_.layout(id);
}

absl::StatusOr<Graph> GraphBuilder::Finish() && {
  if (!status_.ok()) return status_;
  return std::move(graph_);
}

}  // namespace weft
