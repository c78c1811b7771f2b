// Pass 2: the four sweeps.
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

// A chain over "gpu" and "cpu" that begins in the processor's memory: 'g' and 'c' are products with
// a weight there, 's' is a silu and 'a' a scale, both free.
class Chain {
 public:
  explicit Chain(const std::string& ops, const std::vector<RigDevice>& devices = Pair(),
                 const std::vector<Rule>& disabled = {})
      : rig_(devices) {
    const auto last = static_cast<int32_t>(devices.size()) - 1;
    NodeId at = rig_.Cache("x", {8, 1, 1, 1}, last);
    for (const char op : ops) {
      if (op == 's') {
        at = rig_.g.Unary(at, UnaryKind::kSilu);
      } else if (op == 'a') {
        at = rig_.g.Scale(at, 2);
      } else {
        at = rig_.g.MulMat(rig_.Weight("w", {8, 8, 1, 1}, op == 'g' ? 0 : last), at);
      }
      nodes_.push_back(at);
    }
    rig_.g.MarkOutput(at);
    for (const Rule rule : disabled) rig_.input.options.disabled.Add(rule);
    EXPECT_OK(rig_.Plan());
  }

  static std::vector<RigDevice> Pair() { return {Gpu("gpu"), Cpu("cpu")}; }

  // Device and cause of each free node, in order.
  std::string Free() const {
    std::string text;
    for (const NodeId id : nodes_) {
      const std::string at = rig_.At(id);
      if (at.find("1.") != std::string::npos) continue;
      text += (text.empty() ? "" : ", ") + at;
    }
    return text;
  }

 private:
  PlanRig rig_;
  std::vector<NodeId> nodes_;
};

TEST(Expand, Sweep1_AcceleratorsSpreadForward) {
  EXPECT_EQ(Chain("gss").Free(), "gpu 2.sup, gpu 2.sup");
  // Without it, the same comes of the third sweep.
  EXPECT_EQ(Chain("gsc", Chain::Pair(), {Rule::kSweepForward}).Free(), "gpu 2.sup");
  EXPECT_EQ(Chain("gsc", Chain::Pair(), {Rule::kSweepForward, Rule::kSweepAllForward}).Free(),
            "cpu 2.sup");
}

TEST(Expand, Sweep2_AcceleratorsSpreadBackward) {
  EXPECT_EQ(Chain("ssg").Free(), "gpu 2.sup, gpu 2.sup");
  EXPECT_EQ(Chain("csg").Free(), "gpu 2.sup");
  EXPECT_EQ(Chain("csg", Chain::Pair(), {Rule::kSweepBackward}).Free(), "cpu 2.sup");
}

TEST(Expand, Sweep3_ThenProcessorsForward) {
  EXPECT_EQ(Chain("gcs").Free(), "cpu 2.sup");
  EXPECT_EQ(Chain("csa").Free(), "cpu 2.sup, cpu 2.sup");
  EXPECT_EQ(Chain("gcs", Chain::Pair(), {Rule::kSweepAllForward}).Free(), "cpu 3.best");
}

TEST(Expand, Sweep4_AndBackward) {
  EXPECT_EQ(Chain("scg").Free(), "cpu 2.sup");
  EXPECT_EQ(Chain("scg", Chain::Pair(), {Rule::kSweepAllBackward}).Free(), "cpu 3.best");
}

TEST(Expand, AProcessor_EndsTheFirstTwoSweeps) {
  EXPECT_EQ(Chain("gcs").Free(), "cpu 2.sup");
  EXPECT_EQ(Chain("scg").Free(), "cpu 2.sup");
  // It spreads in them itself if it does not stop them, here before the gpu does backward.
  EXPECT_EQ(Chain("csg", Chain::Pair(), {Rule::kHostStops}).Free(), "cpu 2.sup");
}

TEST(Expand, AProcessorBetweenAccelerators_GetsNothingMore) {
  EXPECT_EQ(Chain("gscsg").Free(), "gpu 2.sup, gpu 2.sup");
}

// What a device refuses is left out; the sweep goes on behind it.
TEST(Expand, ARefusedNode_DoesNotStopASweep) {
  std::vector<RigDevice> devices = Chain::Pair();
  devices[0].options.supports = RefuseOps({Op::kUnary});
  EXPECT_EQ(Chain("gsa", devices).Free(), "cpu 3.best, gpu 2.sup");
  EXPECT_EQ(Chain("gsc", devices).Free(), "cpu 2.sup");
}

TEST(Expand, AnAcceleratorInHostMemory_CountsAsAProcessor) {
  // It reads the weights of the processor and comes first.
  const std::vector<RigDevice> devices = {Gpu("gpu"), Accelerator("blas", "cpu"), Cpu("cpu")};
  EXPECT_EQ(Chain("csg", devices).Free(), "gpu 2.sup");
  EXPECT_EQ(Chain("csg", devices, {Rule::kSweepBackward}).Free(), "blas 2.sup");
}

TEST(Expand, TheNearestAcceleratorSpreads) {
  PlanRig rig({Gpu("gpu0"), Gpu("gpu1"), Cpu("cpu")});
  const NodeId x = rig.Input("x", {8, 1, 1, 1});
  const NodeId a = rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 0), x);
  const NodeId b = rig.g.Unary(a, UnaryKind::kSilu);
  const NodeId c = rig.g.MulMat(rig.Weight("c", {8, 8, 1, 1}, 1), b);
  const NodeId d = rig.g.Unary(c, UnaryKind::kSilu);
  rig.g.MarkOutput(d);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(b), "gpu0 2.sup");
  EXPECT_EQ(rig.At(d), "gpu1 2.sup");
}

// Two layers of two machines: the last sum of the first reads two tensors and hands one on.
TEST(Expand, AMachine_StaysOutOfLayersOfOthers) {
  for (const bool rule : {true, false}) {
    SCOPED_TRACE(rule);
    PlanRig rig({Gpu("w1.gpu", "w1"), Cpu("w0.cpu", "w0"), Cpu("w1.cpu", "w1"), Cpu("cpu")});
    rig.g.set_layer(0);
    const NodeId a = rig.Named(
        rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 1), rig.Input("x", {8, 1, 1, 1})), "a");
    const NodeId b = rig.Named(rig.g.MulMat(rig.Weight("b", {8, 8, 1, 1}, 1), a), "b");
    const NodeId sum = rig.Named(rig.g.Add(a, b), "sum");
    rig.g.set_layer(1);
    const NodeId free = rig.Named(rig.g.Scale(sum, 2), "free");
    const NodeId c = rig.Named(rig.g.MulMat(rig.Weight("c", {8, 8, 1, 1}, 0), free), "c");
    // Of no layer, and of one of which nothing is fixed.
    rig.g.set_layer(-1);
    const NodeId d = rig.Named(rig.g.Scale(c, 2), "d");
    rig.g.set_layer(2);
    rig.g.MarkOutput(rig.Named(rig.g.Scale(d, 2), "e"));
    if (!rule) rig.input.options.disabled.Add(Rule::kLayerHost);
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.Splits(), rule ? "w0.cpu [input x]: a b sum; w1.gpu [tensor sum]: free c d e"
                                 : "w0.cpu [input x]: a b; w1.gpu [tensor a, tensor b]: sum free "
                                   "c d e");
  }
}

// Both machines hold a part of the layer.
TEST(Expand, AMachine_SpreadsInALayerThatItHoldsPartOf) {
  PlanRig rig({Gpu("w1.gpu", "w1"), Cpu("w0.cpu", "w0"), Cpu("cpu")});
  rig.g.set_layer(0);
  const NodeId a =
      rig.Named(rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 1), rig.Input("x", {8, 1, 1, 1})), "a");
  const NodeId b = rig.Named(rig.g.Scale(a, 2), "b");
  rig.g.MarkOutput(rig.Named(rig.g.MulMat(rig.Weight("c", {8, 8, 1, 1}, 0), b), "c"));
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "w0.cpu [input x]: a; w1.gpu [tensor a]: b c");
}

// Nodes of no layer are no layer together, wherever some of them are fixed.
TEST(Expand, NodesOfNoLayer_AreHeldByNobody) {
  PlanRig rig({Gpu("w1.gpu", "w1"), Cpu("w0.cpu", "w0"), Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 1), rig.Input("x", {8, 1, 1, 1}));
  rig.g.set_layer(0);
  const NodeId b = rig.g.MulMat(rig.Weight("b", {8, 8, 1, 1}, 0), a);
  rig.g.set_layer(-1);
  const NodeId c = rig.g.Scale(b, 2);
  rig.g.MarkOutput(c);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(c), "w1.gpu 2.sup");
}

TEST(Expand, PinsSpreadToo) {
  PlanRig rig(Chain::Pair());
  const NodeId a = rig.g.Scale(rig.Input("x", {8, 1, 1, 1}), 2);
  const NodeId b = rig.g.Unary(a, UnaryKind::kSilu);
  rig.g.MarkOutput(b);
  rig.input.pins = {{a, 0}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(b), "gpu 2.sup");
}

// Its target is where it was made; a result that is written into goes where the writer runs.
TEST(Expand, SetRows_FollowsItsTarget) {
  std::vector<RigDevice> devices = Chain::Pair();
  devices[0].options.supports = RefuseOps({Op::kSetRows});
  for (const bool refused : {false, true}) {
    PlanRig rig(refused ? devices : Chain::Pair());
    const NodeId a = rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 0), rig.Input("x", {8, 4, 1, 1}));
    const NodeId target = rig.g.Copy(a, DType::kF32);
    const NodeId written = rig.g.Make(
        Op::kSetRows, {},
        {target, rig.Input("rows", {8, 2, 1, 1}), rig.Input("ids", {2, 1, 1, 1}, DType::kI32)});
    const NodeId b = rig.g.MulMat(rig.Weight("b", {8, 8, 1, 1}, 0), written);
    rig.g.MarkOutput(b);
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.At(target), refused ? "cpu 3.best" : "gpu 2.sup");
    EXPECT_EQ(rig.At(written), refused ? "cpu 3.best" : "gpu 2.sup");
    EXPECT_EQ(rig.At(b), "gpu 1.wgt0");
  }
}

}  // namespace
}  // namespace weft
