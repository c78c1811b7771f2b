// Pass 5: splits and what they copy, and the graph that is made of them.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

// A chain of products on a GPU whose weights lie in host memory, of these sizes in rows of 32
// bytes.
PlanRig StagedChain(const std::vector<int64_t>& rows) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.offload_batch = 1;
  PlanRig rig({gpu, Cpu("cpu")});
  const NodeId x = rig.Input("x", kVector);
  for (size_t i = 0; i < rows.size(); ++i) {
    const NodeId w = rig.Weight(absl::StrCat("w", i), {8, rows[i], 1, 1}, 1);
    rig.g.MarkOutput(rig.Named(rig.g.MulMat(w, x), absl::StrCat("n", i)));
  }
  return rig;
}

TEST(Cut, StagedWeights_AreLimitedPerSplit) {
  PlanRig rig = StagedChain({4, 4, 4, 4, 4});
  rig.input.options.staged_bytes_limit = 256;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(),
            "gpu [weight w0, input x, weight w1]: n0 n1; gpu [weight w2, weight w3]: n2 n3; "
            "gpu [weight w4]: n4");
  rig.input.options.staged_bytes_limit = 255;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 5u);
  rig.input.options.disabled.Add(Rule::kStagedLimit);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 1u);
}

TEST(Cut, AWeightAboveTheLimit_GoesAlone) {
  PlanRig rig = StagedChain({1, 100, 1, 1});
  rig.input.options.staged_bytes_limit = 64;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(),
            "gpu [weight w0, input x]: n0; gpu [weight w1]: n1; gpu [weight w2, weight w3]: n2 n3");
}

// The memory of a staged weight is used again by the next ones.
TEST(Cut, StagedWeights_ShareMemory) {
  PlanRig rig = StagedChain(std::vector<int64_t>(20, 1000));
  rig.input.options.staged_bytes_limit = 32000;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.result().plan.splits.size(), 20u);
  EXPECT_LT(rig.result().memory.pools[0].Bytes(), 20 * 4032 + 2 * 32000);
}

TEST(Cut, AReplica_IsMadeOnceAndReused) {
  for (const bool reuse : {true, false}) {
    PlanRig rig({Gpu("gpu"), Cpu("cpu")});
    if (!reuse) rig.input.options.disabled.Add(Rule::kReuseReplica);
    const NodeId x = rig.Input("x", kVector);
    const NodeId a = rig.Named(rig.g.MulMat(rig.Weight("wa", kMatrix, 1), x), "a");
    const NodeId b = rig.Named(rig.g.Add(rig.g.MulMat(rig.Weight("wb", kMatrix, 0), a), x), "b");
    const NodeId c = rig.Named(rig.g.MulMat(rig.Weight("wc", kMatrix, 1), b), "c");
    const NodeId d = rig.g.Add(rig.g.MulMat(rig.Weight("wd", kMatrix, 0), c), a);
    rig.g.MarkOutput(rig.g.Add(d, x));
    ASSERT_OK(rig.Plan());
    // An input is filled by the host, once per device in any case.
    EXPECT_EQ(rig.Copies(),
              absl::StrCat("tensor a -> gpu 32; input x -> gpu 32; tensor b -> cpu 32; "
                           "tensor c -> gpu 32",
                           reuse ? "" : "; tensor a -> gpu 32"));
  }
}

TEST(Cut, AContiguousPart_IsCopiedInsteadOfTheWhole) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId a =
      rig.Named(rig.g.MulMat(rig.Weight("wa", kMatrix, 1), rig.Input("x", {8, 100, 1, 1})), "a");
  const NodeId row = rig.Named(rig.g.View(a, kVector, {4, 32, 32, 32}, 64), "row");
  const NodeId column = rig.Named(rig.g.View(a, {1, 100, 1, 1}, {4, 32, 3200, 3200}, 4), "column");
  const NodeId b = rig.Named(rig.g.MulMat(rig.Weight("wb", kMatrix, 0), row), "b");
  ASSERT_NE(column, kNoNode);
  rig.g.MarkOutput(b);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "cpu: a; gpu [tensor row]: b");
  EXPECT_EQ(rig.Copies(), "tensor row -> gpu 32");
  // What is no contiguous part is read through a view of a replica of the whole.
  rig.g.MarkOutput(rig.Named(rig.g.Add(rig.g.Scale(b, 0), rig.g.Contiguous(column)), "c"));
}

TEST(Cut, AViewWithGaps_IsMadeAgainOnTheReplica) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId a =
      rig.Named(rig.g.MulMat(rig.Weight("wa", kMatrix, 1), rig.Input("x", {8, 100, 1, 1})), "a");
  const NodeId columns =
      rig.Named(rig.g.View(a, {4, 100, 1, 1}, {4, 32, 3200, 3200}, 16), "columns");
  const NodeId b = rig.Named(rig.g.MulMat(rig.Weight("wb", {4, 8, 1, 1}, 0), columns), "b");
  rig.g.MarkOutput(b);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Copies(), "tensor a -> gpu 3200");
  const ScheduledGraph& scheduled = rig.result().scheduled;
  const NodeId reader = scheduled.splits.back().nodes.back();
  const NodeId view = scheduled.graph.node(reader).sources[1];
  EXPECT_EQ(scheduled.graph.node(view).op, Op::kView);
  EXPECT_EQ(scheduled.graph.node(view).view_offset, 16);
  EXPECT_EQ(scheduled.graph.Root(view), scheduled.splits.back().copies.front().node);
  EXPECT_EQ(scheduled.origin[Index(view)], columns);
  EXPECT_EQ(scheduled.devices[Index(view)], 0);
}

TEST(Cut, DirectRead_NoCopyWhereADeviceReadsTheMemory) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.reads_host_memory = true;
  for (const bool direct : {true, false}) {
    PlanRig rig({gpu, Cpu("cpu")});
    if (!direct) rig.input.options.disabled.Add(Rule::kDirectRead);
    const NodeId x = rig.Input("x", kVector);
    const NodeId a = rig.Named(rig.g.MulMat(rig.Weight("wa", kMatrix, 1), x), "a");
    rig.input.pins = {{a, 1}};
    const NodeId b = rig.Named(rig.g.MulMat(rig.Weight("wb", kMatrix, 0), a), "b");
    rig.g.MarkOutput(rig.Named(rig.g.Add(b, x), "c"));
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.Splits(), direct ? "cpu: a; gpu: b c" : "cpu: a; gpu [tensor a, input x]: b c");
  }
}

// --- Experts ---

// A router and experts in host memory; the products by expert run on the GPU.
class Experts : public testing::Test {
 protected:
  void Build(bool router_on_gpu, bool other_ids = false) {
    const int32_t home = router_on_gpu ? 0 : 1;
    const NodeId x = rig_.Input("x", {8, 2, 1, 1});
    const NodeId scores =
        rig_.Named(rig_.g.MulMat(rig_.Weight("router", {8, 4, 1, 1}, home), x), "scores");
    const NodeId ids = rig_.Named(rig_.g.TopK(scores, 2, kNoNode), "ids");
    const NodeId up = rig_.Weight("up", {8, 16, 4, 1}, 1);
    const NodeId down = rig_.Weight("down", {16, 8, 4, 1}, 1);
    const NodeId rows = rig_.g.Reshape(x, {8, 1, 2, 1});
    const NodeId h = rig_.Named(rig_.g.MulMatId(up, rows, ids), "h");
    NodeId y = rig_.Named(rig_.g.MulMatId(down, h, ids), "y");
    if (other_ids) {
      y = rig_.g.Add(
          y, rig_.Named(rig_.g.MulMatId(down, h, rig_.Input("other", {2, 2, 1, 1}, DType::kI32)),
                        "z"));
    }
    rig_.g.MarkOutput(rig_.Named(y, "out"));
    rig_.input.batch = 2;
  }

  static RigDevice Wanting() {
    RigDevice gpu = Gpu("gpu");
    gpu.options.offload_batch = 1;
    return gpu;
  }

  PlanRig rig_{{Wanting(), Cpu("cpu")}};
};

TEST_F(Experts, IdsOfTheOpenSplit_CutIt) {
  Build(true);
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.Splits(), "gpu [input x]: scores ids; gpu [experts up, experts down]: h out");
  EXPECT_EQ(rig_.Copies(), "input x -> gpu 64; experts up -> gpu 2048; experts down -> gpu 2048");
  for (const ScheduledCopy& copy : rig_.result().scheduled.splits[1].copies) {
    EXPECT_EQ(rig_.result().scheduled.graph.node(copy.ids).op, Op::kTopK);
  }
}

TEST_F(Experts, IdsOfAnotherDevice_NeedNoCut) {
  Build(false);
  rig_.input.pins = {{NodeId{2}, 1}, {NodeId{3}, 1}};
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.Splits(),
            "cpu: scores ids; gpu [experts up, input x, tensor ids, experts down]: h out");
}

TEST_F(Experts, DifferentIds_CopyThemAll) {
  Build(true, true);
  ASSERT_OK(rig_.Plan());
  EXPECT_THAT(rig_.Splits(), testing::HasSubstr("gpu [experts up, weight down"));
}

TEST_F(Experts, RuleOff_CopiesThemAll) {
  Build(true);
  rig_.input.options.disabled.Add(Rule::kExpertCopies);
  ASSERT_OK(rig_.Plan());
  EXPECT_EQ(rig_.Splits(), "gpu [input x, weight up, weight down]: scores ids h out");
}

TEST_F(Experts, OfAnotherMachine_AreCopiedInFull) {
  PlanRig rig({Gpu("w0.gpu", "w0"), Cpu("cpu")});
  const NodeId ids = rig.Input("ids", {2, 2, 1, 1}, DType::kI32);
  const NodeId y = rig.Named(
      rig.g.MulMatId(rig.Weight("up", {8, 16, 4, 1}, 1), rig.Input("x", {8, 1, 2, 1}), ids), "y");
  rig.g.MarkOutput(y);
  rig.input.pins = {{y, 0}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "w0.gpu [weight up, input x, input ids]: y");
}

// --- Ops that change their source ---

TEST(Cut, AStoreIsNeverOfACopy) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
  const NodeId store = rig.Named(rig.g.KvStore(rig.Cache("keys", {8, kPageTokens, 1, 2}, 0),
                                               rig.Input("rows", {8, 1, 2, 1}), slots),
                                 "store");
  rig.g.MarkOutput(rig.g.GetRows(rig.g.Reshape(store, {8, 2 * kPageTokens, 1, 1}), slots));
  rig.input.pins = {{store, 1}};
  const absl::Status status = rig.Plan();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              testing::HasSubstr("(kv_store 'store') on cpu changes memory of gpu memory, which "
                                 "that device cannot use"));
}

TEST(Cut, ACacheReadElsewhere_IsCopiedAfterTheStore) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
  const NodeId store = rig.Named(rig.g.KvStore(rig.Cache("keys", {8, kPageTokens, 1, 2}, 1),
                                               rig.Input("rows", {8, 1, 2, 1}), slots),
                                 "store");
  const NodeId all = rig.g.Reshape(store, {8, 2 * kPageTokens, 1, 1});
  const NodeId read = rig.Named(rig.g.GetRows(all, slots), "read");
  rig.g.MarkOutput(rig.Named(rig.g.MulMat(rig.Weight("w", kMatrix, 0), read), "y"));
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "cpu: store; gpu [tensor store, input slots]: read y");
}

}  // namespace
}  // namespace weft
