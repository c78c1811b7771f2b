#include "tests/unit/common/graph/fused_forms.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Appends a copy of `node` that reads what its sources became.
NodeId Carry(const Node& node, const std::vector<NodeId>& became, Graph& target) {
  Node copy = node;
  for (NodeId& source : copy.sources) source = became[static_cast<size_t>(Index(source))];
  if (copy.view_root != kNoNode) copy.view_root = target.Root(copy.sources[0]);
  return target.Append(std::move(copy));
}

class FormBuilder {
 public:
  NodeId Floats(const Extents& ne) {
    return builder.Leaf(LeafKind::kInput, inputs_++, DType::kF32, ne, "floats");
  }
  NodeId Ids(const Extents& ne) {
    return builder.Leaf(LeafKind::kInput, inputs_++, DType::kI32, ne, "ids");
  }
  // Rows of n that are every second one of a larger tensor, behind one element.
  NodeId Gaps(int64_t n) {
    return builder.View(Floats({n + 3, 10, 3, 1}), {n, 5, 3, 1}, {4, 8 * (n + 3), 40 * (n + 3), 4},
                        4);
  }
  FusedForm Finish(std::string name, NodeId result) && {
    builder.Name(result, "fused");
    builder.MarkOutput(result);
    absl::StatusOr<Graph> graph = std::move(builder).Finish();
    EXPECT_OK(graph) << name;
    return {std::move(name), *std::move(graph)};
  }

  GraphBuilder builder;

 private:
  int32_t inputs_ = 0;
};

template <typename Make>
void AddForm(std::vector<FusedForm>& forms, std::string name, Make make) {
  FormBuilder form;
  form.builder.set_layer(3);
  const NodeId result = make(form, form.builder);
  forms.push_back(std::move(form).Finish(std::move(name), result));
}

void AddGlus(std::vector<FusedForm>& forms) {
  for (int kind = 0; kind <= static_cast<int>(GluKind::kSwigluOai); ++kind) {
    GluAttributes glu{static_cast<GluKind>(kind)};
    // Inputs are within [-1, 1]: some are clamped.
    if (glu.kind == GluKind::kSwigluOai) glu.limit = 0.75f;
    const std::string name(GluName(glu.kind));
    AddForm(forms, name + " of two", [&](FormBuilder& form, GraphBuilder& g) {
      const NodeId gate = form.Floats({7, 5, 3, 1});
      return g.Glu(gate, form.Gaps(7), glu);
    });
    AddForm(forms, name + " of one", [&](FormBuilder& form, GraphBuilder& g) {
      return g.Glu(form.Floats({14, 3, 1, 2}), kNoNode, glu);
    });
    glu.swapped = true;
    AddForm(forms, name + " of one, swapped, with gaps",
            [&](FormBuilder& form, GraphBuilder& g) { return g.Glu(form.Gaps(14), kNoNode, glu); });
  }
}

}  // namespace

std::vector<FusedForm> AllFusedForms() {
  std::vector<FusedForm> forms;
  AddGlus(forms);
  for (const Op op : {Op::kNorm, Op::kRmsNorm}) {
    AddForm(forms, std::string(OpName(op)), [&](FormBuilder& form, GraphBuilder& g) {
      const NodeId x = form.Gaps(9);
      return g.Make(op, NormAttributes{1e-3f}, {x, form.Floats({9, 1, 1, 1})});
    });
  }
  AddForm(forms, "one row normed by itself", [](FormBuilder& form, GraphBuilder& g) {
    const NodeId x = form.Floats({9, 1, 1, 1});
    return g.RmsNorm(x, x, 1e-5f);
  });
  for (const float factor : {1.0f, -2.5f, 0.0f}) {
    AddForm(forms, absl::StrCat("scale by ", factor), [&](FormBuilder& form, GraphBuilder& g) {
      return g.Scale(form.Gaps(5), factor, 0.1f);
    });
  }
  for (const float scale : {0.125f, -30.0f, 0.0f}) {
    AddForm(forms, absl::StrCat("soft_max of ", scale),
            [&](FormBuilder& form, GraphBuilder& g) { return g.SoftMax(form.Gaps(11), scale); });
  }
  AddForm(forms, "add_id", [](FormBuilder& form, GraphBuilder& g) {
    const NodeId x = form.Gaps(6);
    const NodeId bias = form.Floats({6, 4, 1, 1});
    return g.AddId(x, bias, form.Ids({5, 3, 1, 1}));
  });
  AddForm(forms, "add_id with gaps", [](FormBuilder& form, GraphBuilder& g) {
    const NodeId x = form.Floats({6, 2, 3, 1});
    const NodeId bias = form.Floats({6, 4, 1, 1});
    return g.AddId(x, bias, g.View(form.Ids({8, 3, 1, 1}), {2, 3, 1, 1}, {4, 32, 96, 96}, 8));
  });
  return forms;
}

Graph Resolve(const Graph& graph) {
  Graph plain;
  std::vector<NodeId> became;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!HasPlainForm(graph, NodeId{i})) {
      became.push_back(Carry(graph.node(NodeId{i}), became, plain));
      continue;
    }
    std::vector<NodeId> sources;
    for (const NodeId source : graph.node(NodeId{i}).sources) {
      sources.push_back(became[static_cast<size_t>(Index(source))]);
    }
    const absl::StatusOr<NodeId> result = AppendPlainForm(graph, NodeId{i}, sources, plain);
    EXPECT_OK(result);
    became.push_back(result.value_or(kNoNode));
  }
  EXPECT_OK(VerifyGraph(plain));
  return plain;
}

Graph Fuse(const Graph& graph, const std::vector<Fusion>& fusions) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes()) nodes.push_back(&node);
  for (const Fusion& fusion : fusions) {
    for (const NodeId id : fusion.replaced) {
      EXPECT_NE(nodes[static_cast<size_t>(Index(id))], nullptr) << "replaced twice";
      nodes[static_cast<size_t>(Index(id))] = nullptr;
    }
    nodes[static_cast<size_t>(Index(fusion.result))] = &fusion.fused;
  }
  Graph fused;
  std::vector<NodeId> became;
  became.reserve(nodes.size());
  for (const Node* node : nodes) {
    became.push_back(node == nullptr ? kNoNode : Carry(*node, became, fused));
  }
  EXPECT_OK(VerifyGraph(fused));
  return fused;
}

}  // namespace weft
