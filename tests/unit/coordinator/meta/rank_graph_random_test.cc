// Random graphs over random ranks: whatever the leafs are cut along, the expanded graph computes
// what the whole one does.
#include <cstdio>
#include <map>

#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/meta/random_split.h"

namespace weft {
namespace {

std::vector<std::vector<float>> Outputs(const Graph& graph, const HostGraph& host) {
  std::vector<std::vector<float>> outputs;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.node(NodeId{i}).output) outputs.push_back(host.F32(NodeId{i}));
  }
  return outputs;
}

bool Chooses(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kTopK || node.op == Op::kArgMax) return true;
  }
  return false;
}

TEST(RankGraphRandom, AnyCut_ComputesTheSame) {
  const uint64_t seed = TestSeed(1);
  const uint64_t count = TestCount(300);
  int64_t compared = 0;
  int64_t reductions = 0;
  int64_t gathers = 0;
  std::map<std::string, int64_t> refused;
  for (uint64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i << " WEFT_TEST_COUNT=1");
    Random random(seed + i);
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(3, 40)));
    const auto ranks = static_cast<int32_t>(random.Between(1, 5));
    Random words(seed + i);  // of its own: graphs stay what they were
    std::vector<std::string> arithmetics(static_cast<size_t>(ranks));
    for (std::string& arithmetic : arithmetics) arithmetic = words.Between(0, 3) == 0 ? "a" : "b";
    SplitRig rig(ranks, graph, arithmetics);
    rig.LayAtRandom(random);
    SCOPED_TRACE(rig.Text());
    const auto expanded = rig.Expand();
    if (!expanded.ok()) {
      ++refused[std::string(expanded.status().message())];
      ASSERT_FALSE(absl::IsInternal(expanded.status())) << expanded.status();
      continue;
    }
    ASSERT_OK(VerifyGraph((*expanded)->graph));
    // A choice between values that differ by a rounding may fall otherwise.
    if (Chooses(graph)) continue;
    HostGraph whole(graph);
    FillLeafs(random, graph, whole);
    // Leafs of the whole graph before its steps change them.
    const auto results = rig.Run(**expanded, whole);
    ASSERT_OK(results);
    ASSERT_OK(whole.Run());
    const std::vector<std::vector<float>> want = Outputs(graph, whole);
    ASSERT_EQ(results->size(), want.size());
    for (size_t o = 0; o < want.size(); ++o) {
      ASSERT_THAT((*results)[o], IsNear(want[o], Tolerance{1e-4, 1e-4})) << "output " << o;
    }
    ++compared;
    reductions += (*expanded)->reductions;
    gathers += (*expanded)->gathers;
  }
  std::printf("%lld compared, %lld reductions, %lld gathers\n", static_cast<long long>(compared),
              static_cast<long long>(reductions), static_cast<long long>(gathers));
  for (const auto& [why, times] : refused) {
    std::printf("  refused %lld: %s\n", static_cast<long long>(times), why.c_str());
  }
  if (count < 300) return;
  EXPECT_GT(compared, 60);
  EXPECT_GT(reductions, 0);
  EXPECT_GT(gathers, 0);
}

TEST(RankGraph, WireTypeOverCopies_IsRefused) {
  Random random(1);
  const Graph graph = MakeRandomGraph(random, 5);
  const SplitRig rig(2, graph);
  for (const DType wire : {DType::kBF16, DType::kQ8_0}) {
    EXPECT_THAT(rig.Expand(wire), StatusIs(absl::StatusCode::kInvalidArgument,
                                           testing::HasSubstr("by copies of tensors")));
  }
}

}  // namespace
}  // namespace weft
