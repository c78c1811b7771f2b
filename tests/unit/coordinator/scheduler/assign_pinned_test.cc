// Pass 1: pins, bound memory, weights, inputs; offload and batches are in offload_test.cc.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};
constexpr Extents kPages = {8, kPageTokens, 1, 2};

TEST(AssignPinned, Leafs_WhereTheirMemoryIsOrWhereTheHostFills) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId bound = rig.Weight("w", kMatrix, 0);
  const NodeId cache = rig.Cache("cache", kPages, 0);
  const NodeId x = rig.Input("x", kVector);
  const NodeId table = rig.Table("table", {2, 1, 1, 1});
  const NodeId open = rig.Free("open", kVector);
  const NodeId unread = rig.Free("unread", kVector);
  rig.g.MarkOutput(rig.g.Add(rig.g.MulMat(bound, x), open));
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(bound), "gpu 1.dst");
  EXPECT_EQ(rig.At(cache), "gpu 1.dst");
  EXPECT_EQ(rig.At(x), "cpu 1.inp");
  EXPECT_EQ(rig.At(table), "cpu 1.inp");
  EXPECT_EQ(rig.At(open), "gpu 4.cur");
  EXPECT_EQ(rig.At(unread), "cpu 4.any");
}

TEST(AssignPinned, Weights_TheFirstDecides) {
  PlanRig rig({Gpu("gpu0"), Gpu("gpu1"), Cpu("cpu")});
  const NodeId a = rig.Weight("a", kMatrix, 1);
  const NodeId b = rig.Weight("b", kMatrix, 0);
  const NodeId c = rig.Weight("c", kVector, 2);
  const NodeId first = rig.g.MulMat(a, b);
  const NodeId second = rig.g.Add(first, c);
  rig.g.MarkOutput(second);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(first), "gpu1 1.wgt0");
  EXPECT_EQ(rig.At(second), "cpu 1.wgt1");
}

// The owner of the first weight refuses the op: the second weight does not decide instead.
TEST(AssignPinned, Weights_TheFirstDecidesAlsoWhenItDecidesNothing) {
  RigDevice gpu = Gpu("gpu0");
  gpu.options.supports = RefuseOps({Op::kMulMat});
  PlanRig rig({gpu, Gpu("gpu1"), Cpu("cpu")});
  const NodeId a = rig.Weight("a", kMatrix, 0);
  const NodeId b = rig.Weight("b", kMatrix, 2);
  const NodeId product = rig.Named(rig.g.MulMat(a, b), "product");
  const NodeId after = rig.Named(rig.g.Add(product, rig.Weight("c", kVector, 1)), "after");
  rig.g.MarkOutput(after);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(product), "gpu1 2.sup");
  EXPECT_EQ(rig.Splits(), "gpu1 [weight a, weight b]: product after");
}

TEST(AssignPinned, Weight_ThroughAView) {
  PlanRig rig({Gpu("gpu0"), Gpu("gpu1"), Cpu("cpu")});
  const NodeId w = rig.Weight("w", {16, 8, 1, 1}, 1);
  const NodeId half = rig.g.View(w, {8, 8, 1, 1}, {4, 64, 512, 512}, 32);
  const NodeId y = rig.g.MulMat(half, rig.Input("x", kVector));
  rig.g.MarkOutput(y);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(half), "gpu1 1.vsrc");
  EXPECT_EQ(rig.At(y), "gpu1 1.wgt0");
}

// rope's factors and attention's sinks say nothing about where the model is.
TEST(AssignPinned, RopeAndAttention_AreNotPlacedByTheirWeights) {
  for (const bool exempt : {true, false}) {
    PlanRig rig({Gpu("gpu"), Cpu("cpu")});
    if (!exempt) {
      rig.input.options.disabled.Add(Rule::kExemptRope);
      rig.input.options.disabled.Add(Rule::kExemptAttention);
    }
    const NodeId positions = rig.Input("positions", {2, 1, 1, 1}, DType::kI32);
    const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
    const NodeId w = rig.Weight("w", kMatrix, 0);
    const NodeId q = rig.g.Reshape(rig.g.MulMat(w, rig.Input("x", {8, 2, 1, 1})), {8, 1, 2, 1});
    RopeAttributes rope;
    rope.dimensions = 8;
    const NodeId turned = rig.g.Rope(q, positions, rig.Weight("factors", {4, 1, 1, 1}, 1), rope);
    const NodeId keys = rig.g.KvStore(rig.Cache("keys", kPages, 0), turned, slots);
    const NodeId values = rig.g.KvStore(rig.Cache("values", kPages, 0), q, slots);
    const NodeId attended =
        rig.g.PagedAttention(turned, keys, values, rig.Table("table", {1, 1, 1, 1}),
                             rig.Input("sequence", {2, 1, 1, 1}, DType::kI32), positions,
                             rig.Weight("sinks", {1, 1, 1, 1}, 1), kNoNode, {});
    rig.g.MarkOutput(attended);
    ASSERT_OK(rig.Plan());
    EXPECT_EQ(rig.At(turned), exempt ? "gpu 2.sup" : "cpu 1.wgt2");
    EXPECT_EQ(rig.At(attended), exempt ? "gpu 2.sup" : "cpu 1.wgt6");
  }
}

TEST(AssignPinned, Stores_StayInTheCachesMemory) {
  PlanRig rig({Gpu("gpu0"), Gpu("gpu1"), Cpu("cpu")});
  const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
  const NodeId w = rig.Weight("w", kMatrix, 0);
  const NodeId k = rig.g.Reshape(rig.g.MulMat(w, rig.Input("x", {8, 2, 1, 1})), {8, 1, 2, 1});
  const NodeId store = rig.g.KvStore(rig.Cache("keys", kPages, 1), k, slots);
  const NodeId shown = rig.g.Reshape(store, {8, 2 * kPageTokens, 1, 1});
  const NodeId read = rig.g.GetRows(shown, slots);
  rig.g.MarkOutput(read);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(store), "gpu1 1.vsrc");
  EXPECT_EQ(rig.At(shown), "gpu1 1.vsrc");
  EXPECT_EQ(rig.At(read), "gpu1 2.sup");
}

TEST(AssignPinned, Store_NobodyInThatMemoryRunsIt) {
  RigDevice gpu = Gpu("gpu0");
  gpu.options.supports = RefuseOps({Op::kKvStore});
  PlanRig rig({gpu, Cpu("cpu")});
  const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
  const NodeId rows = rig.Input("rows", {8, 1, 2, 1});
  rig.g.MarkOutput(rig.g.Contiguous(rig.g.Transpose(
      rig.Named(rig.g.KvStore(rig.Cache("keys", kPages, 0), rows, slots), "store"))));
  const absl::Status status = rig.Plan();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("kv_store 'store'"));
  EXPECT_THAT(status.message(), HasSubstr("works in gpu0 memory"));
  EXPECT_THAT(status.message(), HasSubstr("gpu0: no kernel of kv_store"));
}

// Spec B.16 row 3: a draft model's tied head lies in the memory of the target's device.
TEST(AssignPinned, WeightOfAnUnlistedDevice_GoesThroughTheHost) {
  NullDevice elsewhere(Gpu("elsewhere").options);
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId w = rig.Weight("w", kMatrix, 0);
  const NodeId shared = rig.WeightIn("shared", kMatrix, elsewhere.buffer_type());
  const NodeId y = rig.Named(rig.g.MulMat(w, rig.Input("x", kVector)), "y");
  const NodeId logits = rig.Named(rig.g.MulMat(shared, y), "logits");
  rig.g.MarkOutput(logits);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(shared), "cpu 1.host");
  EXPECT_EQ(rig.At(logits), "cpu 1.wgt0");
  EXPECT_EQ(rig.Splits(), "gpu [input x]: y; cpu [tensor y]: logits");
  rig.input.pins = {{logits, 0}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.Splits(), "gpu [input x, weight shared]: y logits");
}

TEST(AssignPinned, CacheThatNobodyReads_IsAnError) {
  NullDevice elsewhere(Gpu("elsewhere").options);
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId slots = rig.Input("slots", {2, 1, 1, 1}, DType::kI32);
  const NodeId keys = rig.Cache("keys", kPages, 0);
  rig.g.MarkOutput(
      rig.g.GetRows(rig.g.Reshape(rig.g.KvStore(keys, rig.Input("rows", {8, 1, 2, 1}), slots),
                                  {8, 2 * kPageTokens, 1, 1}),
                    slots));
  ASSERT_OK(rig.Plan());
  PlanInput input = rig.input;
  input.leafs[Index(keys)].type = &elsewhere.buffer_type();
  ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
  const auto plan = MakeExecutionPlan(context, {});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("'keys'"));
  EXPECT_THAT(plan.status().message(),
              HasSubstr("lies in elsewhere memory, which none of the plan's 2 devices reads"));
}

TEST(AssignPinned, Pin_WinsOverTheWeightAndIsKept) {
  PlanRig rig({Accelerator("blas", "cpu"), Gpu("gpu"), Cpu("cpu")});
  const NodeId y =
      rig.Named(rig.g.MulMat(rig.Weight("w", kMatrix, 1), rig.Input("x", kVector)), "y");
  rig.g.MarkOutput(y);
  rig.input.pins = {{y, 2}};
  ASSERT_OK(rig.Plan());
  // The accelerator in the same memory, which comes first, does not take it over either.
  EXPECT_EQ(rig.At(y), "cpu usr");
  EXPECT_EQ(rig.Splits(), "cpu [weight w]: y");
}

TEST(AssignPinned, Pin_ToADeviceThatRefuses_IsAnError) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.supports = RefuseOps({Op::kMulMat});
  PlanRig rig({gpu, Cpu("cpu")});
  const NodeId y =
      rig.Named(rig.g.MulMat(rig.Weight("w", kMatrix, 1), rig.Input("x", kVector)), "y");
  rig.g.MarkOutput(y);
  rig.input.pins = {{y, 0}};
  const absl::Status status = rig.Plan();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("(mul_mat 'y') is pinned to gpu: no kernel of mul_mat"));
}

TEST(AssignPinned, Pins_ThatCannotBe_AreErrorsOfTheCaller) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId w = rig.Weight("w", kMatrix, 0);
  const NodeId y = rig.g.MulMat(w, rig.Input("x", kVector));
  rig.g.MarkOutput(y);
  const std::vector<std::vector<Pin>> wrong = {
      {{w, 1}},          // its memory is elsewhere
      {{y, 0}, {y, 1}},  // two at once
      {{y, 2}},         {{y, -1}}, {{NodeId{99}, 0}}, {{kNoNode, 0}},
  };
  for (const std::vector<Pin>& pins : wrong) {
    rig.input.pins = pins;
    EXPECT_EQ(rig.Plan().code(), absl::StatusCode::kInvalidArgument)
        << Index(pins.front().node) << " to " << pins.front().device;
  }
  rig.input.pins = {{y, 1}, {y, 1}};
  EXPECT_OK(rig.Plan());
}

TEST(AssignPinned, RulesOff_InputsAndWeightsAreFree) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId x = rig.Input("x", kVector);
  const NodeId a = rig.g.MulMat(rig.Weight("a", kMatrix, 0), x);
  const NodeId b = rig.g.MulMat(rig.Weight("b", kMatrix, 1), a);
  rig.g.MarkOutput(b);
  rig.input.options.disabled.Add(Rule::kInput);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(x), "gpu 4.cur");
  EXPECT_EQ(rig.At(b), "cpu 1.wgt0");
  rig.input.options.disabled.Add(Rule::kWeight);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(b), "gpu 3.best");
}

}  // namespace
}  // namespace weft
