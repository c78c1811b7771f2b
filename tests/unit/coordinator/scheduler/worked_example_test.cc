// Spec M.9. (M.10 is in memory_planner_test.cc.)
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

constexpr int32_t kG = 0, kC = 1;

// n0 = w0 x, n1 = n0 + b, n2 = w1 n1, n3 = silu(n2), n4 = w2 n3 for 32 tokens.
class WorkedExample : public testing::Test {
 protected:
  void Build(bool with_n4) {
    const NodeId w0 = rig_.Weight("w0", {8, 8, 1, 1}, kG);
    const NodeId w1 = rig_.Weight("w1", {8, 8, 1, 1}, kC);
    const NodeId w2 = rig_.Weight("w2", {8, 8, 1, 1}, kG);
    const NodeId b = rig_.Weight("b", {8, 1, 1, 1}, kG);
    x_ = rig_.Input("x", {8, 32, 1, 1});
    n_[0] = rig_.Named(rig_.g.MulMat(w0, x_), "n0");
    n_[1] = rig_.Named(rig_.g.Add(n_[0], b), "n1");
    n_[2] = rig_.Named(rig_.g.MulMat(w1, n_[1]), "n2");
    n_[3] = rig_.Named(rig_.g.Unary(n_[2], UnaryKind::kSilu), "n3");
    if (with_n4) n_[4] = rig_.Named(rig_.g.MulMat(w2, n_[3]), "n4");
    rig_.g.MarkOutput(with_n4 ? n_[4] : n_[3]);
    rig_.input.batch = 32;
  }

  static RigDevice WantingGpu() {
    RigDevice gpu = Gpu("G");
    gpu.options.offload_batch = kDefaultOffloadBatch;
    return gpu;
  }

  PlanRig rig_{{WantingGpu(), Cpu("C")}};
  NodeId x_ = kNoNode;
  NodeId n_[5] = {};
};

TEST_F(WorkedExample, WithoutOffload_AsInTheTable) {
  Build(true);
  rig_.input.options.op_offload = false;
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.At(x_), "C 1.inp");
  EXPECT_EQ(rig_.At(n_[0]), "G 1.wgt0");
  EXPECT_EQ(rig_.At(n_[1]), "G 1.wgt1");
  EXPECT_EQ(rig_.At(n_[2]), "C 1.wgt0");
  EXPECT_EQ(rig_.At(n_[3]), "G 2.sup");
  EXPECT_EQ(rig_.At(n_[4]), "G 1.wgt0");
  EXPECT_EQ(rig_.Splits(), "G [input x]: n0 n1; C [tensor n1]: n2; G [tensor n2]: n3 n4");
}

TEST_F(WorkedExample, WithoutConsumer_TheProcessorSpreads) {
  Build(false);
  rig_.input.options.op_offload = false;
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.At(n_[3]), "C 2.sup");
  EXPECT_EQ(rig_.Splits(), "G [input x]: n0 n1; C [tensor n1]: n2 n3");
}

// The spec's reference cuts before n2, since its split has an input already; here a split is cut
// where staged bytes exceed a limit, and one weight does not.
TEST_F(WorkedExample, WithOffload_TheChainIsOnTheGpu) {
  Build(true);
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.At(n_[2]), "G 1.off");
  EXPECT_EQ(rig_.At(n_[3]), "G 2.sup");
  EXPECT_EQ(rig_.Splits(), "G [input x, weight w1]: n0 n1 n2 n3 n4");
}

// A second weight that would be copied goes over a limit of one: it gets a split, and its memory is
// the first one's, which is read by then.
TEST_F(WorkedExample, WithOffload_StagedBytesAreBounded) {
  Build(true);
  const NodeId w3 = rig_.Weight("w3", {8, 8, 1, 1}, 1);
  const NodeId n5 = rig_.Named(rig_.g.MulMat(w3, n_[4]), "n5");
  rig_.g.MarkOutput(n5);
  const int64_t weight = 8 * 8 * 4;
  rig_.input.options.staged_bytes_limit = 2 * weight;
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.Splits(), "G [input x, weight w1, weight w3]: n0 n1 n2 n3 n4 n5");
  const int64_t together = rig_.result().memory.pools[0].Bytes();
  rig_.input.options.staged_bytes_limit = 2 * weight - 1;
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.Splits(), "G [input x, weight w1]: n0 n1 n2 n3 n4; G [weight w3]: n5");
  EXPECT_EQ(rig_.result().memory.pools[0].Bytes(), together - weight);
}

TEST_F(WorkedExample, WithOffload_BelowTheDevicesBatch_StaysOnTheProcessor) {
  rig_.input.options.offload_batch = 33;
  Build(true);
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.At(n_[2]), "C 1.wgt0");
}

}  // namespace
}  // namespace weft
