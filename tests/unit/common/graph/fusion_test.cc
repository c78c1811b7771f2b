// From plain forms to fused ops: what is found, what blocks, and that nothing changes.
#include "common/graph/fusion.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
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
using ::testing::IsEmpty;

bool Any(const Node&) { return true; }

std::vector<NodeId> AllNodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  nodes.reserve(static_cast<size_t>(graph.size()));
  for (int32_t i = 0; i < graph.size(); ++i) nodes.push_back(NodeId{i});
  return nodes;
}

std::vector<Fusion> FindAll(const Graph& graph) {
  return FindFusions(graph, AllNodes(graph), Any, {});
}

// A builder with leafs.
struct Sketch {
  NodeId Floats(const Extents& ne) {
    return g.Leaf(LeafKind::kInput, inputs++, DType::kF32, ne, "floats");
  }
  Graph Finish() {
    absl::StatusOr<Graph> graph = std::move(g).Finish();
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  GraphBuilder g;
  int32_t inputs = 0;
};

TEST(Fusion, PlainFormOfEveryForm_GivesTheNodeBack) {
  for (const FusedForm& form : AllFusedForms()) {
    SCOPED_TRACE(form.name);
    EXPECT_THAT(FindAll(form.graph), IsEmpty());
    const Graph plain = Resolve(form.graph);
    const std::vector<Fusion> fusions = FindAll(plain);
    ASSERT_EQ(fusions.size(), 1u);
    EXPECT_EQ(Index(fusions[0].result), plain.size() - 1);
    EXPECT_EQ(fusions[0].replaced.back(), fusions[0].result);
    EXPECT_TRUE(std::is_sorted(fusions[0].replaced.begin(), fusions[0].replaced.end()));
    const Graph fused = Fuse(plain, fusions);
    EXPECT_EQ(fused, form.graph) << GraphText(fused) << GraphText(form.graph);
  }
}

TEST(Fusion, RandomGraphs_ResolveAndFuse) {
  const uint64_t seed = TestSeed(800);
  size_t found = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed + i));
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, 40);
    const Graph fused = Fuse(graph, FindAll(graph));
    const Graph again = Resolve(graph);
    const std::vector<Fusion> fusions = FindAll(again);
    EXPECT_EQ(Fuse(again, fusions), fused) << GraphText(again);
    found += fusions.size();
  }
  EXPECT_GT(found, 200u);
}

// Every product of random graphs is somebody's: pairs of ops that fuse are rare, so they are made.
TEST(Fusion, RandomChains_ComputeTheSame) {
  const uint64_t seed = TestSeed(60);
  size_t found = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed + i));
    Random random(seed + i);
    Sketch sketch;
    GraphBuilder& g = sketch.g;
    std::vector<NodeId> pool = {sketch.Floats({8, 3, 1, 1})};
    for (int step = 0; step < 30; ++step) {
      const auto pick = [&] { return pool[random.Between(0, std::ssize(pool) - 1)]; };
      // Mostly the last one: chains.
      const NodeId x = random.Between(0, 2) == 0 ? pick() : pool.back();
      const std::function<NodeId()> steps[] = {
          [&] { return g.Mul(x, pick()); },
          [&] {
            return g.Mul(x, sketch.Floats({8, 1, 1, 1}));
          },
          [&] {
            return g.Add(x, g.Make(Op::kFill, FillAttributes{{1, 1, 1, 1}, 0.5f}, {}));
          },
          [&] { return g.Scale(x, 0.5f); },
          [&] { return g.SoftMax(x); },
          [&] { return g.RmsNorm(x, kNoNode, 1e-2f); },
          [&] { return g.Unary(x, UnaryKind::kSilu); },
          [&] { return g.Unary(x, UnaryKind::kRelu); }};
      pool.push_back(steps[random.Between(0, 7)]());
    }
    g.MarkOutput(pool.back());
    const Graph graph = sketch.Finish();
    const std::vector<Fusion> fusions = FindAll(graph);
    const Graph fused = Fuse(graph, fusions);
    found += fusions.size();
    std::vector<float> results[2];
    for (const Graph* each : {&graph, &fused}) {
      HostGraph host(*each);
      Random values(seed + i);
      FillLeafs(values, *each, host);
      ASSERT_OK(host.Run());
      for (int32_t n = 0; n < each->size(); ++n) {
        if (each->node(NodeId{n}).output) results[each == &fused] = host.F32(NodeId{n});
      }
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (size_t k = 0; k < results[0].size(); ++k) {
      EXPECT_NEAR(results[0][k], results[1][k], 1e-5 * std::max(1.0f, std::abs(results[0][k])));
    }
  }
  EXPECT_GT(found, 200u);
}

// --- What blocks ---

// x, then its half, then soft_max of that.
struct Scaled : Sketch {
  NodeId x = Floats({4, 2, 1, 1});
  NodeId half = g.Scale(x, 0.5f);
  NodeId result = g.SoftMax(half);
};

TEST(Fusion, InnerNodeThatIsNeeded_Blocks) {
  const auto find = [](const std::function<void(Scaled&)>& change) {
    Scaled scaled;
    change(scaled);
    return FindAll(scaled.Finish()).size();
  };
  EXPECT_EQ(find([](Scaled&) {}), 1u);
  EXPECT_EQ(find([](Scaled& s) { s.g.MarkOutput(s.result); }), 1u);
  EXPECT_EQ(find([](Scaled& s) { s.g.Unary(s.x, UnaryKind::kTanh); }), 1u);
  EXPECT_EQ(find([](Scaled& s) { s.g.MarkOutput(s.half); }), 0u);
  EXPECT_EQ(find([](Scaled& s) { s.g.Unary(s.half, UnaryKind::kTanh); }), 0u);
  EXPECT_EQ(find([](Scaled& s) { s.g.Reshape(s.half, {8, 1, 1, 1}); }), 0u);
  EXPECT_EQ(find([](Scaled& s) { s.g.SoftMax(s.half); }), 0u);
}

TEST(Fusion, KeptNodesAndOtherSplits_Block) {
  Scaled s;
  const Graph graph = s.Finish();
  const auto find = [&](const std::vector<NodeId>& nodes, const std::vector<NodeId>& keep) {
    return FindFusions(graph, nodes, Any, keep).size();
  };
  EXPECT_EQ(find({s.half, s.result}, {s.result, s.x}), 1u);
  EXPECT_EQ(find({s.half, s.result}, {s.half}), 0u);
  EXPECT_EQ(find({s.result}, {}), 0u);
  EXPECT_EQ(find({s.x, s.half}, {}), 0u);
  EXPECT_EQ(find({}, {}), 0u);
}

TEST(Fusion, Refusal_LeavesThePlainNodes) {
  Scaled s;
  s.g.Name(s.result, "result");
  const Graph graph = s.Finish();
  std::vector<Node> asked;
  const auto refuse = [&](const Node& fused) {
    asked.push_back(fused);
    return false;
  };
  EXPECT_THAT(FindFusions(graph, AllNodes(graph), refuse, {}), IsEmpty());
  Node want = graph.node(s.result);
  want.attributes = SoftMaxAttributes{0.5f};
  want.sources = {s.x};
  EXPECT_THAT(asked, ElementsAre(want));
}

TEST(Fusion, SourceWrittenBetween_Blocks) {
  // The write comes before the scale, between scale and soft_max, or after both.
  for (int place = 0; place < 3; ++place) {
    for (const bool through_view : {false, true}) {
      Sketch s;
      const NodeId memory = s.g.Leaf(LeafKind::kCache, 0, DType::kF32, {4, 2, 1, 1}, "memory");
      const NodeId row = s.Floats({4, 1, 1, 1});
      const NodeId id = s.g.Leaf(LeafKind::kInput, 9, DType::kI32, {1, 1, 1, 1}, "id");
      const NodeId x = through_view ? s.g.Reshape(memory, {2, 4, 1, 1}) : memory;
      const auto write = [&](int at) {
        if (at == place) s.g.Make(Op::kSetRows, {}, {memory, row, id});
      };
      write(0);
      const NodeId half = s.g.Scale(x, 0.5f);
      write(1);
      s.g.SoftMax(half);
      write(2);
      EXPECT_EQ(FindAll(s.Finish()).size(), place == 1 ? 0u : 1u) << place;
    }
  }
}

TEST(Fusion, InnerNodeThatIsAlsoASource_Blocks) {
  Sketch s;
  const NodeId gate = s.g.Unary(s.Floats({4, 2, 1, 1}), UnaryKind::kSilu);
  s.g.Mul(gate, gate);  // not silu(x) * up for any up that stays
  EXPECT_THAT(FindAll(s.Finish()), IsEmpty());
}

TEST(Fusion, LookAlikes_AreNotTouched) {
  Sketch s;
  GraphBuilder& g = s.g;
  const NodeId x = s.Floats({4, 3, 1, 1});
  const auto silu = [&] { return g.Unary(x, UnaryKind::kSilu); };
  g.Mul(g.RmsNorm(x, kNoNode, 1e-5f), s.Floats({4, 3, 1, 1}));  // a weight per row
  g.Mul(g.RmsNorm(x, kNoNode, 1e-5f), s.Floats({1, 1, 1, 1}));
  g.Mul(g.RmsNorm(x, s.Floats({4, 1, 1, 1}), 1e-5f), s.Floats({4, 1, 1, 1}));
  g.Add(g.RmsNorm(x, kNoNode, 1e-5f), s.Floats({4, 1, 1, 1}));
  g.Mul(silu(), s.Floats({4, 1, 1, 1}));  // a gated unit has no broadcast
  g.Div(silu(), s.Floats({4, 3, 1, 1}));
  g.Mul(g.Unary(x, UnaryKind::kGeluErf), s.Floats({4, 3, 1, 1}));
  g.SoftMax(g.Scale(x, 0.5f, 1));
  g.SoftMax(g.Scale(x, 0.5f), 2);
  g.SoftMax(g.Scale(x, 1));
  g.Add(x, g.Make(Op::kFill, FillAttributes{{4, 1, 1, 1}, 1}, {}));
  g.Add(x, g.Make(Op::kFill, FillAttributes{{1, 1, 1, 1}, 0}, {}));
  EXPECT_THAT(FindAll(s.Finish()), IsEmpty());
}

// All parts of swiglu_oai, but the sigmoid is of another tensor than the one that it scales.
TEST(Fusion, GateOfAnotherTensor_IsNoGate) {
  for (const bool same : {true, false}) {
    Sketch s;
    GraphBuilder& g = s.g;
    const float infinity = std::numeric_limits<float>::infinity();
    const NodeId x = g.Clamp(s.Floats({4, 3, 1, 1}), -infinity, 7);
    const NodeId other = same ? x : g.Clamp(s.Floats({4, 3, 1, 1}), -infinity, 7);
    const NodeId gated = g.Mul(x, g.Unary(g.Scale(other, 2), UnaryKind::kSigmoid));
    const NodeId y = g.Clamp(s.Floats({4, 3, 1, 1}), -7, 7);
    g.Mul(gated, g.Add(y, g.Make(Op::kFill, FillAttributes{{1, 1, 1, 1}, 1}, {})));
    const std::vector<Fusion> fusions = FindAll(s.Finish());
    ASSERT_EQ(fusions.size(), 1u);
    EXPECT_EQ(fusions[0].fused.op, same ? Op::kGlu : Op::kScale);
  }
}

// --- What is chosen ---

TEST(Fusion, ProductOfTwoGates_KeepsTheOneThatOthersRead) {
  for (const bool first_is_read : {false, true}) {
    Sketch s;
    const NodeId x = s.Floats({4, 3, 1, 1});
    const NodeId a = s.g.Unary(x, UnaryKind::kSilu);
    const NodeId z = s.Floats({4, 3, 1, 1});
    const NodeId b = s.g.Unary(z, UnaryKind::kSilu);
    s.g.Mul(a, b);
    s.g.Unary(first_is_read ? a : b, UnaryKind::kTanh);
    const std::vector<Fusion> fusions = FindAll(s.Finish());
    ASSERT_EQ(fusions.size(), 1u);
    EXPECT_THAT(fusions[0].fused.sources,
                ElementsAre(first_is_read ? z : x, first_is_read ? a : b));
  }
}

TEST(Fusion, ProductTheOtherWayRound_IsFound) {
  Sketch s;
  const NodeId x = s.Floats({4, 3, 1, 1});
  const NodeId up = s.Floats({4, 3, 1, 1});
  s.g.Mul(up, s.g.Unary(x, UnaryKind::kGelu));
  const std::vector<Fusion> fusions = FindAll(s.Finish());
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0].fused.attributes, OpAttributes(GluAttributes{GluKind::kGeglu}));
  EXPECT_THAT(fusions[0].fused.sources, ElementsAre(x, up));
}

TEST(Fusion, Views_NeverBlock) {
  Sketch s;
  const NodeId x = s.Floats({8, 3, 1, 1});
  const NodeId gate = s.g.View(x, {4, 3, 1, 1}, {4, 32, 96, 96}, 16);
  const NodeId gated = s.g.Unary(gate, UnaryKind::kRelu);
  const NodeId up = s.g.View(x, {4, 3, 1, 1}, {4, 32, 96, 96}, 0);
  const NodeId result = s.g.Mul(gated, up);
  s.g.Unary(up, UnaryKind::kTanh);
  const Graph graph = s.Finish();

  std::vector<Fusion> fusions = FindAll(graph);
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0].fused.attributes, OpAttributes(GluAttributes{GluKind::kReglu, true}));
  EXPECT_THAT(fusions[0].fused.sources, ElementsAre(x));
  EXPECT_THAT(fusions[0].replaced, ElementsAre(gate, gated, result));

  // A split may list what executes only.
  fusions = FindFusions(graph, {gated, result}, Any, {});
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_THAT(fusions[0].fused.sources, ElementsAre(x));
  EXPECT_THAT(fusions[0].replaced, ElementsAre(gated, result));

  // The second choice reads both.
  const auto two = [](const Node& fused) { return fused.sources.size() == 2; };
  fusions = FindFusions(graph, AllNodes(graph), two, {});
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_THAT(fusions[0].fused.sources, ElementsAre(gate, up));
  EXPECT_THAT(fusions[0].replaced, ElementsAre(gated, result));
}

TEST(Fusion, SmallerOneInALargerOne_IsTheSecondChoice) {
  for (const FusedForm& form : AllFusedForms()) {
    const auto* glu = std::get_if<GluAttributes>(&form.graph.nodes().back().attributes);
    if (glu == nullptr || glu->kind != GluKind::kSwigluOai) continue;
    const Graph plain = Resolve(form.graph);
    const auto supports = [](const Node& fused) { return fused.op != Op::kGlu; };
    const auto fusions = FindFusions(plain, AllNodes(plain), supports, {});
    ASSERT_EQ(fusions.size(), 1u) << form.name;
    EXPECT_EQ(fusions[0].fused.op, Op::kScale);
    EXPECT_EQ(fusions[0].fused.attributes, OpAttributes(ScaleAttributes{1, 1}));
    EXPECT_EQ(fusions[0].replaced.size(), 2u);
  }
}

TEST(Fusion, FactorThatOthersRead_Stays) {
  Sketch s;
  const NodeId scaled = s.g.Scale(s.Floats({4, 3, 1, 1}), 2);
  const NodeId one = s.g.Make(Op::kFill, FillAttributes{{1, 1, 1, 1}, 3}, {});
  const NodeId sum = s.g.Add(scaled, one);
  s.g.Unary(scaled, UnaryKind::kTanh);
  const std::vector<Fusion> fusions = FindAll(s.Finish());
  ASSERT_EQ(fusions.size(), 1u);
  EXPECT_EQ(fusions[0].fused.attributes, OpAttributes(ScaleAttributes{1, 3}));
  EXPECT_THAT(fusions[0].fused.sources, ElementsAre(scaled));
  EXPECT_THAT(fusions[0].replaced, ElementsAre(one, sum));
}

}  // namespace
}  // namespace weft
