// Every op of the table over ranks: the cases that devices are checked with, their sources laid out
// at random, in states that fit together and in states that do not; evaluated rank by rank and put
// together, they give what the op gives whole. Counted by op and states: a rule that nothing uses
// fails.
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "coordinator/meta/rank_cuts.h"
#include "coordinator/meta/split_rules.h"
#include "gtest/gtest.h"
#include "tests/conformance/op_cases.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/meta/random_split.h"

namespace weft {
namespace {

// The case's graph with weights in place of inputs, so that they can be cut; ids stay whole.
Graph WithWeights(const OpCase& op_case) {
  Graph graph = op_case.graph;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf != nullptr && graph.layout(NodeId{i}).dtype != DType::kI32) {
      graph.mutable_node(NodeId{i}).attributes = LeafAttributes{LeafKind::kWeight, leaf->id};
    }
  }
  graph.mutable_node(op_case.result).output = true;
  return graph;
}

std::vector<NodeId> WeightsOf(const Graph& graph) {
  std::vector<NodeId> weights;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf != nullptr && leaf->kind == LeafKind::kWeight) weights.push_back(NodeId{i});
  }
  return weights;
}

std::vector<IndexRange> RangesOf(const SplitState& cut) { return cut.segments[0].ranks; }

SplitState FromRanges(int32_t axis, const std::vector<IndexRange>& ranges, int64_t length,
                      int64_t factor) {
  return SplitState::Cut(axis, {SegmentOf(ranges, length, factor)});
}

// Lays a graph's weights out so that they may fit: one is cut, others like it, along any axis whose
// extent is a multiple or a divisor, or mirrored; now and then all at random.
class Layer {
 public:
  Layer(Random& random, const Graph& graph, SplitRig& rig)
      : random_(random), graph_(graph), rig_(rig), weights_(WeightsOf(graph)) {}

  void Lay() {
    if (weights_.empty()) return;
    if (random_.Between(0, 3) == 0) return rig_.LayAtRandom(random_);
    if (random_.Between(0, 4) == 0) return LaySums();
    const NodeId first = weights_[random_.Between(0, Count() - 1)];
    axis_ = static_cast<int32_t>(random_.Between(0, 2));
    length_ = graph_.layout(first).ne[axis_];
    if (length_ == 0) return rig_.LayAtRandom(random_);
    const SplitState cut = RandomCut(random_, axis_, length_, UnitOf(first, axis_), rig_.ranks());
    ranges_ = RangesOf(cut);
    for (const NodeId id : weights_) {
      const bool like = id == first || random_.Between(0, 2) > 0;
      rig_.Lay(id, id == first ? cut : like ? Like(id) : SplitState::Mirrored());
    }
  }

 private:
  int64_t Count() const { return static_cast<int64_t>(weights_.size()); }
  int64_t UnitOf(NodeId id, int32_t axis) const {
    return axis == 0 ? GetDTypeInfo(graph_.layout(id).dtype).block_elements : 1;
  }

  void LaySums() {
    for (const NodeId id : weights_) {
      const bool sum = graph_.layout(id).dtype == DType::kF32 && random_.Between(0, 1) == 0;
      rig_.Lay(id, sum ? SplitState::Partial() : SplitState::Mirrored());
    }
  }

  // Cut as the first is, along some axis; mirrored if none fits.
  SplitState Like(NodeId id) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const auto axis = static_cast<int32_t>(random_.Between(0, 2));
      const int64_t extent = graph_.layout(id).ne[axis];
      SplitState state;
      if (extent > 1 && extent % length_ == 0) {
        state = FromRanges(axis, ranges_, length_, extent / length_);
      } else if (extent > 0 && length_ % extent == 0) {
        state = FromRanges(axis, GroupsOf(ranges_, length_ / extent), extent, 1);
      } else {
        continue;
      }
      if (IsMultipleOf(state, UnitOf(id, axis))) return state;
    }
    return SplitState::Mirrored();
  }

  Random& random_;
  const Graph& graph_;
  SplitRig& rig_;
  const std::vector<NodeId> weights_;
  int32_t axis_ = 0;
  int64_t length_ = 0;
  std::vector<IndexRange> ranges_;
};

void FillLeafs(const OpCase& op_case, HostGraph& host) {
  for (const auto& [id, bytes] : op_case.leafs) {
    std::copy(bytes.begin(), bytes.end(), host.bytes(id).begin());
  }
}

// Compared where ranks give whole floats; candidates are merged by the sampler's tests, and a
// choice between sums may fall otherwise.
bool IsCompared(const OpCase& op_case, const RankGraph& expanded) {
  if (op_case.op == Op::kSampleCandidates && expanded.reductions > 0) return false;
  return op_case.graph.layout(op_case.result).dtype == DType::kF32 &&
         expanded.outputs[0].state.kind != SplitKind::kCandidates;
}

class OpSplitTest : public testing::Test {
 protected:
  // One case in one random layout.
  void Check(const OpCase& op_case, Random& random) {
    const Graph graph = WithWeights(op_case);
    SplitRig rig(static_cast<int32_t>(random.Between(1, 5)), graph);
    Layer(random, graph, rig).Lay();
    SCOPED_TRACE(op_case.name + "\n" + rig.Text());
    const auto expanded = rig.Expand();
    if (!expanded.ok()) {
      ASSERT_TRUE(absl::IsUnimplemented(expanded.status())) << expanded.status();
      ++refused_[std::string(OpName(op_case.op))];
      return;
    }
    ASSERT_OK(VerifyGraph((*expanded)->graph));
    ++((*expanded)->split_nodes > 0 ? split_ : whole_)[op_case.op];
    if (!IsCompared(op_case, **expanded)) return;
    HostGraph whole(graph);
    FillLeafs(op_case, whole);
    const auto results = rig.Run(**expanded, whole);
    ASSERT_OK(results);
    ASSERT_OK(whole.Run());
    const Tolerance sums = {1e-4, 1e-4 + op_case.tolerance.absolute};
    ASSERT_THAT((*results)[0], IsNear(whole.F32(op_case.result), sums));
  }

  std::map<Op, int64_t> split_, whole_;
  std::map<std::string, int64_t> refused_;
};

TEST_F(OpSplitTest, EveryCase_InRandomStates) {
  const uint64_t seed = TestSeed(1);
  const uint64_t rounds = TestCount(10);
  std::set<Op> seen;
  const std::vector<OpCase> cases = AllOpCases(1);
  for (uint64_t round = 0; round < rounds; ++round) {
    Random random(seed + round);
    for (const OpCase& op_case : cases) {
      // The oracle takes long for the large ones, which say no more here.
      if (NodeCost(op_case.graph, op_case.result).flops > 300'000) continue;
      seen.insert(op_case.op);
      SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + round << " WEFT_TEST_COUNT=1");
      Check(op_case, random);
      if (HasFailure()) return;
    }
  }
  for (const Op op : seen) {
    std::printf("%-18s %5lld split, %5lld whole, rule: %s\n", std::string(OpName(op)).c_str(),
                static_cast<long long>(split_[op]), static_cast<long long>(whole_[op]),
                std::string(SplitRuleText(op)).c_str());
  }
  for (const auto& [op, count] : refused_) {
    std::printf("%-18s %5lld refused\n", op.c_str(), static_cast<long long>(count));
  }
  if (rounds < 10) return;
  for (const Op op : seen) {
    const bool never = SplitRuleText(op) == "M";
    EXPECT_EQ(split_[op] > 0, !never) << OpName(op);
  }
}

}  // namespace
}  // namespace weft
