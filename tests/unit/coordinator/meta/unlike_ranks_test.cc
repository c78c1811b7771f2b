// Ranks that round differently: what is chosen by values is chosen once (decision 18).
#include "coordinator/meta/unlike_ranks.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/graph_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/host_graph.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tensor_matchers.h"
#include "tests/unit/coordinator/meta/random_split.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(UnlikeRanks, KindAndArithmetic_Decide) {
  std::vector<std::unique_ptr<NullDevice>> owned;
  std::vector<Device*> devices;
  const auto add = [&](const std::string& name, DeviceKind kind, const std::string& arithmetic) {
    NullDeviceOptions options;
    options.name = name;
    options.host = name;
    options.kind = kind;
    options.arithmetic = arithmetic;
    devices.push_back(owned.emplace_back(std::make_unique<NullDevice>(options)).get());
  };
  add("w0", DeviceKind::kCpu, "avx2");
  add("w1", DeviceKind::kCpu, "avx2");
  add("w2", DeviceKind::kCpu, "avx512");
  add("w3", DeviceKind::kGpu, "avx2");
  add("w4", DeviceKind::kGpu, "");
  add("w5", DeviceKind::kGpu, "");
  EXPECT_EQ(UnlikeRanks(devices, {0, 1}), "");
  EXPECT_EQ(UnlikeRanks(devices, {2}), "");
  // What is not said is the description, which these have in common.
  EXPECT_EQ(UnlikeRanks(devices, {4, 5}), "");
  EXPECT_EQ(UnlikeRanks(devices, {1, 0, 2, 3}), "w2 (cpu, avx512) rounds unlike w1 (cpu, avx2)");
  EXPECT_EQ(UnlikeRanks(devices, {3, 0}), "w0 (cpu, avx2) rounds unlike w3 (gpu, avx2)");
  EXPECT_THAT(UnlikeRanks(devices, {3, 4}), HasSubstr("w4 (gpu, computes nothing)"));
}

// A layer of experts: two of four for each of three tokens, cut along their columns.
struct Experts {
  Graph graph;
  NodeId router, up, down;

  Experts() {
    GraphBuilder g;
    const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 3, 1, 1}, "x");
    const NodeId positions = g.Leaf(LeafKind::kInput, 1, DType::kI32, {3, 1, 1, 1}, "positions");
    router = g.Leaf(LeafKind::kWeight, 0, DType::kF32, {8, 4, 1, 1}, "router");
    up = g.Leaf(LeafKind::kWeight, 1, DType::kF32, {8, 6, 4, 1}, "up");
    down = g.Leaf(LeafKind::kWeight, 2, DType::kF32, {6, 8, 4, 1}, "down");
    const NodeId probabilities = g.SoftMax(g.MulMat(router, x));
    const NodeId ids = g.Name(g.TopK(probabilities, 2, positions), "chosen");
    const NodeId table = g.Reshape(probabilities, {1, 4, 3, 1});
    const NodeId weights = g.Reshape(g.GetRows(table, ids), {1, 2, 3, 1});
    const NodeId hidden = g.MulMatId(up, g.Reshape(x, {8, 1, 3, 1}), ids);
    g.MarkOutput(g.Mul(g.MulMatId(down, hidden, ids), weights));
    graph = *std::move(g).Finish();
  }

  void LayOn(SplitRig& rig) const {
    const std::vector<int64_t> bounds = {0, 2, 3, 6};
    rig.Lay(router, SplitState::Mirrored());
    rig.Lay(up, CutAtBounds(1, bounds));
    rig.Lay(down, CutAtBounds(0, bounds));
  }
};

int64_t CountOf(const Graph& graph, Op op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [op](const Node& node) { return node.op == op; });
}

TEST(UnlikeRanks, Experts_AreChosenByTheFirst_AndGathered) {
  const Experts experts;
  SplitRig rig(3, experts.graph, {"a", "a", "b"});
  experts.LayOn(rig);
  ASSERT_OK_AND_ASSIGN(const auto expanded, rig.Expand(DType::kQ8_0, ExchangeKind::kCollectives));
  const Graph& graph = expanded->graph;
  ASSERT_OK(VerifyGraph(graph));
  EXPECT_EQ(expanded->choices, 1);
  EXPECT_EQ(expanded->gathers, 0);
  EXPECT_THAT(expanded->remarks,
              ElementsAre("tp0: what top_k takes is chosen by rank 0 for all, as w2.gpu0 (gpu, b) "
                          "rounds unlike w0.gpu0 (gpu, a)"));
  EXPECT_EQ(CountOf(graph, Op::kTopK), 1);
  EXPECT_EQ(CountOf(graph, Op::kAllGather), 3);
  std::vector<int32_t> device_of(graph.nodes().size(), -1);
  for (const Pin& pin : expanded->input.pins) device_of[Index(pin.node)] = pin.device;
  int products = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId{i});
    if (node.op == Op::kAllGather) {
      // Whatever sums travel as, numbers of experts are never rounded.
      const auto& gather = std::get<AllGatherAttributes>(node.attributes);
      EXPECT_EQ(gather.wire, DType::kI32);
      EXPECT_THAT(gather.counts, ElementsAre(2, 0, 0));
      EXPECT_EQ(node.sources.size(), device_of[i] == 0 ? 1U : 0U);
      EXPECT_EQ(node.name, "chosen.first");
    }
    if (node.op != Op::kMulMatId) continue;
    ++products;
    // Each by the ids on its own device.
    EXPECT_EQ(graph.node(node.sources[2]).op, Op::kAllGather);
    EXPECT_EQ(device_of[Index(node.sources[2])], device_of[i]);
  }
  EXPECT_EQ(products, 6);
}

TEST(UnlikeRanks, LikeRanks_ChooseForThemselves) {
  const Experts experts;
  SplitRig rig(3, experts.graph, {"a", "a", "a"});
  experts.LayOn(rig);
  ASSERT_OK_AND_ASSIGN(const auto expanded, rig.Expand(DType::kF32, ExchangeKind::kCollectives));
  EXPECT_EQ(expanded->choices, 0);
  EXPECT_THAT(expanded->remarks, testing::IsEmpty());
  EXPECT_EQ(CountOf(expanded->graph, Op::kTopK), 3);
  EXPECT_EQ(CountOf(expanded->graph, Op::kAllGather), 0);
}

TEST(UnlikeRanks, ByCopies_TheOthersReadWhatTheFirstChose) {
  const Experts experts;
  SplitRig rig(3, experts.graph, {"a", "b", "a"});
  experts.LayOn(rig);
  ASSERT_OK_AND_ASSIGN(const auto expanded, rig.Expand());
  EXPECT_EQ(CountOf(expanded->graph, Op::kTopK), 1);
  Random random(7);
  HostGraph whole(experts.graph);
  FillLeafs(random, experts.graph, whole);
  ASSERT_OK_AND_ASSIGN(const std::vector<std::vector<float>> got, rig.Run(*expanded, whole));
  ASSERT_OK(whole.Run());
  const NodeId last{experts.graph.size() - 1};
  EXPECT_THAT(got[0], IsNear(whole.F32(last), Tolerance{1e-5, 1e-5}));
}

}  // namespace
}  // namespace weft
