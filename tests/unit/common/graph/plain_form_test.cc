// Fused ops against their plain forms, by the oracle.
#include "common/graph/plain_form.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/support/host_graph.h"
#include "tests/support/random_graph.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/graph/fused_forms.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// By how much the last bit of `fused` may be off from the plain form's: each node of it rounds.
double Tolerance(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op == Op::kScale || node.op == Op::kAddId) return 0;
  const auto* glu = std::get_if<GluAttributes>(&node.attributes);
  if (glu != nullptr && glu->kind == GluKind::kReglu) return 0;
  // Of exponents up to 32 in size 32 half units are lost, in an element and in the largest.
  const bool exponent = node.op == Op::kSoftMax || (glu && glu->kind == GluKind::kSwigluOai);
  return exponent ? 0x1p-24 * 72 : 0x1p-24 * 3;
}

void ExpectNear(const std::vector<float>& x, const std::vector<float>& y, double relative) {
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(std::isfinite(x[i])) << i;
    // Products of denormals have no relative precision.
    const double slack = relative == 0 ? 0 : relative * std::abs(x[i]) + 0x1p-140;
    ASSERT_LE(std::abs(double{x[i]} - double{y[i]}), slack) << i << ": " << x[i] << ", " << y[i];
  }
}

// Appends the plain form of every fused node beside it and compares what both compute.
void ExpectPlainFormsAgree(const Graph& graph, Random& random) {
  Graph both = graph;
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!HasPlainForm(graph, NodeId{i})) continue;
    ASSERT_OK_AND_ASSIGN(const NodeId plain,
                         AppendPlainForm(both, NodeId{i}, graph.node(NodeId{i}).sources, both));
    pairs.emplace_back(NodeId{i}, plain);
  }
  ASSERT_OK(VerifyGraph(both));
  HostGraph host(both);
  FillLeafs(random, both, host);
  ASSERT_OK(host.Run());
  for (const auto& [fused, plain] : pairs) {
    SCOPED_TRACE(NodeText(graph, fused));
    ExpectNear(host.F32(fused), host.F32(plain), Tolerance(graph, fused));
  }
}

TEST(PlainForm, EveryForm_ComputesWhatTheFusedOpDoes) {
  Random random(TestSeed(11));
  for (const FusedForm& form : AllFusedForms()) {
    SCOPED_TRACE(form.name);
    ASSERT_TRUE(HasPlainForm(form.graph, NodeId{form.graph.size() - 1}));
    ExpectPlainFormsAgree(form.graph, random);
  }
}

TEST(PlainForm, NegativeIds_AddNothing) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {2, 3, 1, 1}, "x");
  const NodeId bias = g.Leaf(LeafKind::kInput, 1, DType::kF32, {2, 2, 1, 1}, "bias");
  const NodeId ids = g.Leaf(LeafKind::kInput, 2, DType::kI32, {3, 1, 1, 1}, "ids");
  g.AddId(x, bias, ids);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const Graph plain = Resolve(graph);
  HostGraph host(plain);
  host.SetF32(x, {1, 2, 3, 4, 5, 6});
  host.SetF32(bias, {10, 20, 30, 40});
  host.SetI32(ids, {1, -1, 0});
  ASSERT_OK(host.Run());
  EXPECT_THAT(host.F32(NodeId{plain.size() - 1}), ElementsAre(31, 42, 3, 4, 15, 26));
}

TEST(PlainForm, RandomGraphs_ComputeTheSame) {
  const uint64_t seed = TestSeed(300);
  for (uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed + i));
    Random random(seed + i);
    ExpectPlainFormsAgree(MakeRandomGraph(random, 40), random);
  }
}

TEST(PlainForm, EveryForm_HasNamesAndNoFusedOps) {
  for (const FusedForm& form : AllFusedForms()) {
    SCOPED_TRACE(form.name);
    const NodeId id{form.graph.size() - 1};
    Graph plain = form.graph;
    ASSERT_OK_AND_ASSIGN(const NodeId result,
                         AppendPlainForm(form.graph, id, form.graph.node(id).sources, plain));
    EXPECT_EQ(Index(result), plain.size() - 1);
    for (int32_t i = form.graph.size(); i < plain.size(); ++i) {
      const Node& node = plain.node(NodeId{i});
      const bool last = i == Index(result);
      EXPECT_FALSE(HasPlainForm(node)) << NodeText(plain, NodeId{i});
      EXPECT_EQ(node.layer, 3);
      EXPECT_EQ(node.output, last);
      EXPECT_EQ(node.name, last ? "fused" : absl::StrCat("fused (part ", i - Index(id), ")"));
    }
    EXPECT_EQ(plain.layout(result), form.graph.layout(id));
  }
}

TEST(PlainForm, Alone_IsLegalWithTheSameLayouts) {
  for (const FusedForm& form : AllFusedForms()) {
    SCOPED_TRACE(form.name);
    const NodeId id{form.graph.size() - 1};
    Graph whole = form.graph;
    ASSERT_OK(AppendPlainForm(form.graph, id, form.graph.node(id).sources, whole).status());
    ASSERT_OK_AND_ASSIGN(const Graph alone, PlainFormOf(form.graph, id));
    ASSERT_OK(VerifyGraph(alone));
    const auto& sources = form.graph.node(id).sources;
    const auto leafs = std::count_if(alone.nodes().begin(), alone.nodes().end(),
                                     [](const Node& node) { return node.op == Op::kLeaf; });
    EXPECT_EQ(leafs, std::ssize(std::set<NodeId>(sources.begin(), sources.end())));
    // What a device is asked about: the same nodes over sources of the same layouts.
    for (int32_t i = alone.size() - 1, j = whole.size() - 1; j > Index(id); --i, --j) {
      ASSERT_GE(i, 0);
      EXPECT_EQ(alone.node(NodeId{i}).op, whole.node(NodeId{j}).op);
      EXPECT_EQ(alone.node(NodeId{i}).attributes, whole.node(NodeId{j}).attributes);
      EXPECT_EQ(alone.SourceLayouts(NodeId{i}), whole.SourceLayouts(NodeId{j}));
    }
  }
}

TEST(PlainForm, LeafsAlone_KeepTheirKind) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId weight = g.Leaf(LeafKind::kWeight, 7, DType::kF32, {4, 1, 1, 1}, "weight");
  const NodeId y = g.RmsNorm(g.Unary(x, UnaryKind::kSilu), weight, 1e-5f);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  ASSERT_OK_AND_ASSIGN(const Graph alone, PlainFormOf(graph, y));
  ASSERT_NE(alone.leaf(NodeId{1}), nullptr);
  EXPECT_EQ(alone.leaf(NodeId{0})->kind, LeafKind::kInput);
  EXPECT_EQ(alone.leaf(NodeId{1})->kind, LeafKind::kWeight);
  EXPECT_EQ(alone.node(NodeId{1}).name, "weight");
}

TEST(PlainForm, Table_CoversEveryFusedOp) {
  std::set<Op> covered;
  for (const FusedForm& form : AllFusedForms()) covered.insert(form.graph.nodes().back().op);
  EXPECT_EQ(covered, std::set<Op>(FusedOps().begin(), FusedOps().end()));
}

TEST(PlainForm, OtherNodes_HaveNone) {
  const uint64_t seed = TestSeed(5);
  for (uint64_t i = 0; i < 50; ++i) {
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, 40);
    for (const Node& node : graph.nodes()) {
      const bool fused = std::count(FusedOps().begin(), FusedOps().end(), node.op) != 0;
      EXPECT_TRUE(fused || !HasPlainForm(node)) << OpName(node.op);
    }
  }
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId empty = g.Leaf(LeafKind::kInput, 1, DType::kF32, {4, 0, 1, 1}, "empty");
  for (const NodeId id : {x, g.RmsNorm(x, kNoNode, 1e-5f), g.Scale(x, 2), g.SoftMax(x),
                          g.Scale(empty, 2, 1), g.Glu(empty, kNoNode, {})}) {
    EXPECT_FALSE(HasPlainForm(g.graph(), id)) << NodeText(g.graph(), id);
  }
}

TEST(PlainForm, BadRequests_AreErrors) {
  GraphBuilder g;
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId other = g.Leaf(LeafKind::kInput, 1, DType::kF32, {4, 3, 1, 1}, "other");
  const NodeId y = g.Name(g.Swiglu(x, x), "y");
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const auto expect = [&](NodeId id, const std::vector<NodeId>& sources, const char* text) {
    Graph target = graph;
    EXPECT_THAT(AppendPlainForm(graph, id, sources, target),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  expect(x, {}, "node 0 (leaf 'x'): no plain form over 0 sources");
  expect(y, {x}, "node 2 (glu 'y'): no plain form over 1 sources");
  expect(y, {x, NodeId{3}}, "no plain form over 2 sources");
  expect(y, {x, kNoNode}, "no plain form over 2 sources");
  expect(y, {x, other}, "does not fit the sources");
  expect(y, {other, other}, "does not fit the sources");
  EXPECT_THAT(PlainFormOf(graph, x),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
}

}  // namespace
}  // namespace weft
