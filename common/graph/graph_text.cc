// The text form of a graph: one line per node, stable, for dumps, reviews and golden files.
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/graph/graph.h"

namespace weft {
namespace {

std::string Text(const NoAttributes&) { return ""; }
std::string Text(const LeafAttributes& a) {
  static constexpr const char* kKinds[] = {"input", "weight", "cache", "page_table"};
  return absl::StrCat(kKinds[static_cast<int>(a.kind)], " ", a.id);
}
std::string Text(const ViewAttributes& a) {
  return absl::StrCat("offset ", a.offset, " strides ", absl::StrJoin(a.nb, " "));
}
std::string Text(const ReshapeAttributes&) { return ""; }
std::string Text(const PermuteAttributes& a) {
  return absl::StrCat("axes ", absl::StrJoin(a.axes, " "));
}
std::string Text(const CopyAttributes&) { return ""; }
std::string Text(const RepeatAttributes&) { return ""; }
std::string Text(const AxisAttributes& a) { return absl::StrCat("axis ", a.axis); }
std::string Text(const PadAttributes& a) {
  return absl::StrCat("after ", absl::StrJoin(a.after, " "));
}
std::string Text(const FillAttributes& a) { return absl::StrCat("value ", a.value); }
std::string Text(const ScaleAttributes& a) {
  return absl::StrCat("factor ", a.factor, " bias ", a.bias);
}
std::string Text(const ClampAttributes& a) { return absl::StrCat(a.low, " to ", a.high); }
std::string Text(const UnaryAttributes& a) { return std::string(UnaryName(a.kind)); }
std::string Text(const GluAttributes& a) {
  std::string text(GluName(a.kind));
  if (a.swapped) text += " swapped";
  if (a.kind == GluKind::kSwigluOai) absl::StrAppend(&text, " alpha ", a.alpha, " limit ", a.limit);
  return text;
}
std::string Text(const NormAttributes& a) { return absl::StrCat("epsilon ", a.epsilon); }
std::string Text(const SoftMaxAttributes& a) { return absl::StrCat("scale ", a.scale); }
std::string Text(const TopKAttributes& a) { return absl::StrCat("k ", a.k); }
std::string Text(const SampleCandidatesAttributes& a) {
  return absl::StrCat("k ", a.k, a.first_id == 0 ? "" : absl::StrCat(" from id ", a.first_id));
}
std::string Text(const RopeAttributes& a) {
  static constexpr const char* kKinds[] = {"adjacent", "half", "sections", "interleaved"};
  std::string text = absl::StrCat(kKinds[static_cast<int>(a.kind)], " dimensions ", a.dimensions,
                                  " base ", a.base);
  if (a.frequency_scale != 1) absl::StrAppend(&text, " scale ", a.frequency_scale);
  if (a.extrapolation != 0) {
    absl::StrAppend(&text, " yarn ", a.extrapolation, " context ", a.original_context, " beta ",
                    a.beta_fast, " ", a.beta_slow);
  }
  if (a.attention_factor != 1) absl::StrAppend(&text, " factor ", a.attention_factor);
  return text;
}
std::string Text(const PagedAttentionAttributes& a) {
  std::string text = absl::StrCat("scale ", a.scale);
  if (a.softcap != 0) absl::StrAppend(&text, " softcap ", a.softcap);
  if (a.window_kind == WindowKind::kSliding) absl::StrAppend(&text, " window ", a.window);
  if (a.window_kind == WindowKind::kChunked) absl::StrAppend(&text, " chunks of ", a.window);
  if (a.value_dimensions != 0) absl::StrAppend(&text, " value prefix ", a.value_dimensions);
  if (a.has_sinks) absl::StrAppend(&text, " sinks");
  if (a.has_slopes) absl::StrAppend(&text, " slopes");
  if (a.heads_per_kv != 0) {
    absl::StrAppend(&text, " heads ", a.heads_per_kv, " per kv from ", a.head_offset);
  }
  return text;
}
std::string Text(const GetRowsAttributes& a) {
  return a.partial_table ? absl::StrCat("from row ", a.first_row) : "";
}
std::string Text(const TriangleAttributes& a) {
  return absl::StrCat(a.lower ? "lower" : "upper", a.diagonal ? " with diagonal" : "");
}

std::string Text(const ReceiveAttributes&) { return ""; }
std::string Text(const CollectiveKey& key, DType wire) {
  return absl::StrCat("id ", key.id, " communicator ", key.communicator, " wire ",
                      static_cast<int>(wire) < kDTypeCount ? AbslView(DTypeName(wire)) : "?");
}
std::string Text(const AllReduceAttributes& a) { return Text(a.key, a.wire); }
std::string Text(const AllGatherAttributes& a) {
  return absl::StrCat(Text(a.key, a.wire), " axis ", a.axis, " counts ",
                      absl::StrJoin(a.counts, " "));
}

}  // namespace

std::string NodeText(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool known = static_cast<int>(node.op) < kOpCount;
  return absl::StrCat("node ", Index(id), " (", known ? AbslView(OpName(node.op)) : "?", " '",
                      node.name.substr(0, 64), "')");
}

std::string GraphText(const Graph& graph) {
  std::string text;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId{i});
    absl::StrAppend(&text, "%", i, " = ", AbslView(OpName(node.op)), "(");
    for (size_t k = 0; k < node.sources.size(); ++k) {
      absl::StrAppend(&text, k == 0 ? "%" : ", %", Index(node.sources[k]));
    }
    absl::StrAppend(&text, ") : ", LayoutText(node.layout));
    const std::string attributes =
        std::visit([](const auto& a) { return Text(a); }, node.attributes);
    if (!attributes.empty()) absl::StrAppend(&text, "  {", attributes, "}");
    if (node.output) absl::StrAppend(&text, "  output");
    if (!node.name.empty()) absl::StrAppend(&text, "  '", node.name, "'");
    text += '\n';
  }
  return text;
}

}  // namespace weft
