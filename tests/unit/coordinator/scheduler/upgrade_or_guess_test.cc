// Pass 3: better devices with the same memory, and guesses.
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

// A BLAS-like device: products only, in the processor's memory.
RigDevice Blas() {
  RigDevice blas = Accelerator("blas", "cpu");
  blas.options.supports = [](const Graph& graph, NodeId id) -> Support {
    if (graph.node(id).op == Op::kMulMat) return absl::OkStatus();
    return absl::UnimplementedError("products only");
  };
  return blas;
}

// Two products of activations, which no weight places, behind a node of the processor.
struct Products {
  NodeId seed = kNoNode, first = kNoNode, second = kNoNode;

  explicit Products(PlanRig& rig, int32_t home) {
    seed = rig.Named(rig.g.Add(rig.Input("x", kMatrix), rig.Weight("b", kVector, home)), "seed");
    first = rig.Named(rig.g.MulMat(seed, seed), "first");
    second = rig.Named(rig.g.MulMat(first, first), "second");
    rig.g.MarkOutput(second);
  }
};

TEST(Upgrade, AnAcceleratorTakesNodesOfTheSameMemory) {
  PlanRig rig({Blas(), Gpu("gpu"), Cpu("cpu")});
  const Products products(rig, 2);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(products.seed), "cpu 1.wgt1");
  EXPECT_EQ(rig.At(products.first), "blas 3.upg");
  EXPECT_EQ(rig.At(products.second), "blas 3.upg");
  // Nothing is copied, since the memory is the same.
  EXPECT_EQ(rig.Splits(), "cpu: seed; blas: first second");
}

TEST(Upgrade, RuleOff_TheProcessorKeepsThem) {
  PlanRig rig({Blas(), Gpu("gpu"), Cpu("cpu")});
  const Products products(rig, 2);
  rig.input.options.disabled.Add(Rule::kUpgrade);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "cpu: seed first second");
}

TEST(Upgrade, NotBehindTheOwnersPlace) {
  PlanRig rig({Gpu("gpu"), Cpu("w0.cpu", "w0"), Accelerator("blas", "cpu"), Cpu("cpu")});
  rig.input.options.disabled.Add(Rule::kGuess);
  const Products products(rig, 1);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(products.first), "w0.cpu 2.sup");  // another memory than blas's
}

TEST(Upgrade, Pins_AreRespected) {
  PlanRig rig({Blas(), Gpu("gpu"), Cpu("cpu")});
  const Products products(rig, 2);
  rig.input.pins = {{products.first, 2}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(products.first), "cpu usr");
  EXPECT_EQ(rig.At(products.second), "blas 3.upg");
}

TEST(Upgrade, OnlyInItsBatches) {
  RigDevice blas = Blas();
  blas.options.preferred_batch = {32, 4096};
  PlanRig rig({blas, Gpu("gpu"), Cpu("cpu")});
  const Products products(rig, 2);
  rig.input.batch = 31;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(products.first), "cpu 2.sup");
  rig.input.batch = 32;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(products.first), "blas 3.upg");
}

// A source in another memory would have to be copied for it.
TEST(Upgrade, OnlyWhereItReadsEverySource) {
  PlanRig rig({Blas(), Gpu("gpu"), Cpu("cpu")});
  const NodeId there =
      rig.Named(rig.g.Add(rig.Input("x", kMatrix), rig.Weight("b", kVector, 1)), "there");
  const NodeId here =
      rig.Named(rig.g.Add(rig.Input("y", kMatrix), rig.Weight("c", kVector, 2)), "here");
  const NodeId mixed = rig.Named(rig.g.MulMat(here, there), "mixed");
  rig.g.MarkOutput(mixed);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(mixed), "cpu 2.sup");
}

// The host fills inputs where they are read, also beside another processor than the last.
TEST(Upgrade, InputsAreReadAnywhere) {
  PlanRig rig({Accelerator("w0.blas", "w0.cpu", "w0"), Cpu("w0.cpu", "w0"), Cpu("cpu")});
  const NodeId seed = rig.g.Scale(rig.Cache("c", kMatrix, 1), 2);
  const NodeId product = rig.g.MulMat(seed, rig.Input("x", kMatrix));
  rig.g.MarkOutput(product);
  rig.input.pins = {{seed, 1}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(product), "w0.blas 3.upg");
}

// A result that is written into later goes where the writer runs too.
TEST(Upgrade, NotAwayFromWhatWritesIntoTheResult) {
  PlanRig rig({Blas(), Cpu("cpu")});
  const NodeId seed = rig.g.Add(rig.Input("x", kMatrix), rig.Weight("b", kVector, 1));
  const NodeId target = rig.g.MulMat(seed, seed);
  rig.g.MarkOutput(rig.g.Make(
      Op::kSetRows, {},
      {target, rig.Input("rows", kVector), rig.Input("ids", {1, 1, 1, 1}, DType::kI32)}));
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(target), "cpu 2.sup");
}

// --- Guesses: what no device that spreads can run ---

RigDevice Refusing(RigDevice device, std::vector<Op> ops) {
  device.options.supports = RefuseOps(std::move(ops));
  return device;
}

TEST(Guess, MostReadableSources) {
  RigDevice gpu1 = Gpu("gpu1");
  gpu1.options.reads_host_memory = true;
  PlanRig rig({Refusing(Gpu("gpu0"), {Op::kConcat}), Gpu("gpu2"), gpu1, Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", kMatrix, 0), rig.Input("x", kVector));
  const NodeId joined = rig.g.Concat(a, rig.Cache("y", kVector, 3), 1);
  rig.g.MarkOutput(joined);
  ASSERT_OK(rig.Plan());
  // gpu1 and cpu read one source each, gpu2 none.
  EXPECT_EQ(rig.At(joined), "gpu1 3.best");
}

// An input is no reason to leave the machine that holds the rest.
TEST(Guess, InputsDoNotCount) {
  PlanRig rig({Refusing(Gpu("w0.gpu", "w0"), {Op::kRope}), Cpu("w0.cpu", "w0"), Cpu("cpu")});
  const NodeId q = rig.g.Reshape(rig.g.MulMat(rig.Weight("q", kMatrix, 0), rig.Input("x", kMatrix)),
                                 {8, 1, 8, 1});
  RopeAttributes rope;
  rope.dimensions = 8;
  const NodeId turned = rig.g.Rope(q, rig.Input("positions", kVector, DType::kI32), kNoNode, rope);
  rig.g.MarkOutput(turned);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(turned), "w0.cpu 3.best");
}

TEST(Guess, Ties_GoToTheMachineThatHoldsTheSources) {
  PlanRig rig({Gpu("w1.gpu", "w1"), Refusing(Gpu("w0.gpu", "w0"), {Op::kArgMax}),
               Cpu("w0.cpu", "w0"), Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", kMatrix, 1), rig.Input("x", kVector));
  const NodeId best = rig.g.Make(Op::kArgMax, {}, {a});
  rig.g.MarkOutput(best);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(best), "w0.cpu 3.best");
  rig.input.options.disabled.Add(Rule::kTieHost);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(best), "w1.gpu 3.best");
}

TEST(Guess, Ties_ADeviceInItsBatchesFirst) {
  RigDevice gpu = Gpu("gpu1");
  gpu.options.preferred_batch = {32, 64};
  PlanRig rig({Refusing(Gpu("gpu0"), {Op::kArgMax}), gpu, Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", kMatrix, 0), rig.Input("x", kVector));
  const NodeId best = rig.g.Make(Op::kArgMax, {}, {a});
  rig.g.MarkOutput(best);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(best), "cpu 3.best");
  rig.input.batch = 32;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(best), "gpu1 3.best");
}

TEST(Guess, NothingReadable_TheFirstThatRunsIt) {
  PlanRig rig({Refusing(Gpu("gpu0"), {Op::kFill}), Gpu("gpu1"), Cpu("cpu")});
  const NodeId filled = rig.g.Make(Op::kFill, FillAttributes{kVector, 1}, {});
  rig.g.MarkOutput(filled);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(filled), "gpu1 3.best");
}

TEST(Guess, RuleOff_TheFirstThatRunsIt) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId a = rig.g.Scale(rig.Cache("x", kVector, 1), 2);
  rig.g.MarkOutput(a);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(a), "cpu 3.best");
  rig.input.options.disabled.Add(Rule::kGuess);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(a), "gpu 4.any");
}

}  // namespace
}  // namespace weft
