// Rule weight-host: a node is on the machine of its weights.
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};
constexpr int32_t kNear = 0, kFar = 1, kFarCpu = 2;

RigDevice Refusing(RigDevice device, std::vector<Op> ops) {
  device.options.supports = RefuseOps(std::move(ops));
  return device;
}

// w0 has a GPU, w1 a GPU that refuses some ops and a CPU.
std::vector<RigDevice> Machines(std::vector<Op> refused) {
  return {Gpu("w0.gpu", "w0"), Refusing(Gpu("w1.gpu", "w1"), std::move(refused)),
          Cpu("w1.cpu", "w1"), Cpu("cpu")};
}

NodeId OnNear(PlanRig& rig) {
  return rig.g.MulMat(rig.Weight("near", kMatrix, kNear), rig.Input("x", kVector));
}

void Disable(PlanRig& rig) { rig.input.options.disabled.Add(Rule::kWeightHost); }

TEST(WeightHost, ASweepStaysOffWeightsOfOthers) {
  PlanRig rig(Machines({Op::kAdd}));
  const NodeId sum = rig.g.Add(OnNear(rig), rig.Weight("b", kVector, kFar));
  rig.g.MarkOutput(sum);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(sum), "w1.cpu 3.best");
  Disable(rig);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(sum), "w0.gpu 2.sup");
}

// The weight does not decide where these are, but on which machine.
TEST(WeightHost, RopeIsOnTheMachineOfItsFactors) {
  PlanRig rig(Machines({}));
  const NodeId q = rig.g.Reshape(OnNear(rig), {8, 1, 1, 1});
  RopeAttributes rope;
  rope.dimensions = 8;
  const NodeId turned = rig.g.Rope(q, rig.Input("positions", {1, 1, 1, 1}, DType::kI32),
                                   rig.Weight("factors", {4, 1, 1, 1}, kFarCpu), rope);
  const NodeId after = rig.g.MulMat(rig.Weight("far", kMatrix, kFar), turned);
  rig.g.MarkOutput(after);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(turned), "w1.gpu 2.sup");
  Disable(rig);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(turned), "w0.gpu 2.sup");
}

TEST(WeightHost, NoDeviceBesideTheWeight_AnotherMachine) {
  std::vector<RigDevice> machines = Machines({Op::kAdd});
  machines[kFarCpu] = Refusing(machines[kFarCpu], {Op::kAdd});
  PlanRig rig(machines);
  const NodeId sum = rig.g.Add(OnNear(rig), rig.Weight("b", kVector, kFar));
  rig.g.MarkOutput(sum);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(sum), "w0.gpu 2.sup");
}

TEST(WeightHost, PinsWin) {
  PlanRig rig(Machines({}));
  const NodeId sum = rig.g.Add(OnNear(rig), rig.Weight("b", kVector, kFar));
  rig.g.MarkOutput(sum);
  rig.input.pins = {{sum, kNear}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(sum), "w0.gpu usr");
}

// The first weight decides, unless no device beside it runs the node.
TEST(WeightHost, OfTwoWeights_TheFirstThatCan) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused);
    std::vector<RigDevice> machines = Machines({Op::kAdd});
    if (refused) machines[kFarCpu] = Refusing(machines[kFarCpu], {Op::kAdd});
    PlanRig rig(machines);
    const NodeId sum =
        rig.g.Add(rig.Weight("far", kVector, kFar), rig.Weight("near", kVector, kNear));
    rig.g.MarkOutput(sum);
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.At(sum), refused ? "w0.gpu 3.best" : "w1.cpu 3.best");
  }
}

// What is written into and what writes are on one machine: that of the writer's weight.
TEST(WeightHost, ATargetIsWithTheWeightsOfItsWriters) {
  for (const bool pinned : {false, true}) {
    SCOPED_TRACE(pinned);
    PlanRig rig(Machines({}));
    const NodeId target = rig.g.Scale(OnNear(rig), 2);
    const NodeId written = rig.g.Make(
        Op::kSetRows, {},
        {target, rig.Weight("rows", kVector, kFar), rig.Input("ids", {1, 1, 1, 1}, DType::kI32)});
    rig.g.MarkOutput(written);
    if (pinned) rig.input.pins = {{target, kNear}};
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.At(target), pinned ? "w0.gpu usr" : "w1.gpu 3.best");
    EXPECT_EQ(rig.At(written), pinned ? "w0.gpu 2.sup" : "w1.gpu 3.best");
  }
}

// No device beside the weight runs all of them, so they are together elsewhere.
TEST(WeightHost, ATargetThatIsRefusedThere_TakesItsWritersAlong) {
  std::vector<RigDevice> machines = Machines({Op::kScale});
  machines[kFarCpu] = Refusing(machines[kFarCpu], {Op::kScale});
  PlanRig rig(machines);
  const NodeId target = rig.g.Scale(OnNear(rig), 2);
  const NodeId written = rig.g.Make(
      Op::kSetRows, {},
      {target, rig.Weight("rows", kVector, kFar), rig.Input("ids", {1, 1, 1, 1}, DType::kI32)});
  rig.g.MarkOutput(written);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(target), "w0.gpu 2.sup");
  EXPECT_EQ(rig.At(written), "w0.gpu 2.sup");
}

// What has a place is written where it is, whatever is written.
TEST(WeightHost, MemoryWithAPlaceComesFirst) {
  PlanRig rig(Machines({}));
  const NodeId written =
      rig.g.Make(Op::kSetRows, {},
                 {rig.Cache("rows", kVector, kNear), rig.Weight("b", kVector, kFar),
                  rig.Input("ids", {1, 1, 1, 1}, DType::kI32)});
  rig.g.MarkOutput(written);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(written), "w0.gpu 1.vsrc");
}

}  // namespace
}  // namespace weft
