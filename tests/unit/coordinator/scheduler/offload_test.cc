// Pass 1: op offload, and devices that take some batches only (spec B.14a).
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RigDevice Wanting(RigDevice device, int64_t batch) {
  device.options.offload_batch = batch;
  return device;
}

// A product of 32 tokens whose weight lies on the last device, planned after `change`.
std::string ProductOn(const std::vector<RigDevice>& devices, int64_t tokens,
                      const std::function<void(PlanRig&)>& change = nullptr) {
  PlanRig rig(devices);
  const auto last = static_cast<int32_t>(devices.size()) - 1;
  const NodeId y =
      rig.g.MulMat(rig.Weight("w", {8, 8, 1, 1}, last), rig.Input("x", {8, tokens, 1, 1}));
  rig.g.MarkOutput(y);
  rig.input.batch = tokens;
  if (change) change(rig);
  const absl::Status status = rig.Plan();
  EXPECT_OK(status);
  return status.ok() ? rig.At(y) : "";
}

TEST(Offload, FromTheDevicesBatchOn) {
  const std::vector<RigDevice> devices = {Wanting(Gpu("gpu"), 32), Cpu("cpu")};
  EXPECT_EQ(ProductOn(devices, 31), "cpu 1.wgt0");
  EXPECT_EQ(ProductOn(devices, 32), "gpu 1.off");
  EXPECT_EQ(ProductOn({Gpu("gpu"), Cpu("cpu")}, 512), "cpu 1.wgt0");
}

TEST(Offload, TheUsersBatch_AndOff) {
  const std::vector<RigDevice> devices = {Wanting(Gpu("gpu"), 32), Cpu("cpu")};
  const auto batch = [](int64_t tokens) {
    return [tokens](PlanRig& rig) { rig.input.options.offload_batch = tokens; };
  };
  EXPECT_EQ(ProductOn(devices, 8, batch(8)), "gpu 1.off");
  EXPECT_EQ(ProductOn(devices, 64, batch(65)), "cpu 1.wgt0");
  EXPECT_EQ(ProductOn(devices, 64, [](PlanRig& rig) { rig.input.options.op_offload = false; }),
            "cpu 1.wgt0");
  EXPECT_EQ(
      ProductOn(devices, 64, [](PlanRig& rig) { rig.input.options.disabled.Add(Rule::kOffload); }),
      "cpu 1.wgt0");
}

TEST(Offload, OnlyToADeviceOfTheWeightsMachine) {
  EXPECT_EQ(ProductOn({Wanting(Gpu("w0.gpu", "w0"), 32), Cpu("cpu")}, 64), "cpu 1.wgt0");
  EXPECT_EQ(ProductOn({Wanting(Gpu("w0.gpu", "w0"), 32), Wanting(Gpu("gpu"), 32), Cpu("cpu")}, 64),
            "gpu 1.off");
}

TEST(Offload, OnlyToADeviceThatRunsIt_InItsBatches) {
  RigDevice refusing = Wanting(Gpu("gpu0"), 32);
  refusing.options.supports = RefuseOps({Op::kMulMat});
  EXPECT_EQ(ProductOn({refusing, Wanting(Gpu("gpu1"), 32), Cpu("cpu")}, 64), "gpu1 1.off");
  RigDevice large = Wanting(Gpu("gpu0"), 32);
  large.options.preferred_batch = {128, 1024};
  EXPECT_EQ(ProductOn({large, Cpu("cpu")}, 64), "cpu 1.wgt0");
  EXPECT_EQ(ProductOn({large, Cpu("cpu")}, 128), "gpu0 1.off");
}

TEST(Offload, OnlyFromHostMemoryInItsStandardLayout) {
  RigDevice packed = Cpu("cpu");
  packed.options.layout = "q4_0 by 8 rows";
  EXPECT_EQ(ProductOn({Wanting(Gpu("gpu"), 32), packed}, 64), "cpu 1.wgt0");
}

TEST(Offload, NotWhereAGpuReadsTheWeight) {
  RigDevice unified = Wanting(Gpu("gpu1"), 32);
  unified.options.reads_host_memory = true;
  EXPECT_EQ(ProductOn({Wanting(Gpu("gpu0"), 32), unified, Cpu("cpu")}, 64), "gpu1 1.wgt0");
}

// Rows of a large table are fetched where the table is, whatever the batch.
TEST(Offload, NeverGetRows) {
  PlanRig rig({Wanting(Gpu("gpu"), 1), Cpu("cpu")});
  const NodeId rows = rig.g.GetRows(rig.Weight("table", {8, 99, 1, 1}, 1),
                                    rig.Input("ids", {64, 1, 1, 1}, DType::kI32));
  rig.g.MarkOutput(rows);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(rows), "cpu 1.wgt0");
}

// --- Batches ---

// A GPU that computes in the processor's memory: the prompt is its business, single tokens are not.
std::vector<RigDevice> Unified() {
  RigDevice gpu = Gpu("gpu");
  gpu.options.reads_host_memory = true;
  gpu.options.preferred_batch = {32, std::numeric_limits<int64_t>::max()};
  RigDevice cpu = Cpu("cpu");
  cpu.options.preferred_batch = {1, 31};
  return {gpu, cpu};
}

// A layer in miniature: products, a store into the cache, a norm between.
struct MiniLayer {
  NodeId product = kNoNode, store = kNoNode, norm = kNoNode, rows = kNoNode;

  MiniLayer(PlanRig& rig, int64_t tokens, int32_t home) {
    const NodeId slots = rig.Input("slots", {tokens, 1, 1, 1}, DType::kI32);
    product = rig.g.MulMat(rig.Weight("w", {8, 8, 1, 1}, home), rig.Input("x", {8, tokens, 1, 1}));
    store = rig.g.KvStore(rig.Cache("keys", {8, kPageTokens, 1, 4}, home),
                          rig.g.Reshape(product, {8, 1, tokens, 1}), slots);
    norm = rig.g.RmsNorm(product, kNoNode, 1e-5f);
    rows = rig.g.GetRows(rig.g.Reshape(store, {8, 4 * kPageTokens, 1, 1}), slots);
    rig.g.MarkOutput(rig.g.Add(norm, rows));
    rig.input.batch = tokens;
  }
};

TEST(Batch, SharedMemory_PrefillAndDecodeOnDifferentDevices) {
  PlanRig decode(Unified());
  const MiniLayer small(decode, 1, 1);
  ASSERT_OK(decode.Plan());
  EXPECT_EQ(decode.At(small.product), "cpu 1.bat");
  EXPECT_EQ(decode.At(small.store), "cpu 1.bat");
  EXPECT_EQ(decode.At(small.norm), "cpu 2.sup");
  EXPECT_EQ(decode.result().plan.splits.size(), 1u);
  EXPECT_THAT(decode.result().plan.remarks, IsEmpty());

  PlanRig prefill(Unified());
  const MiniLayer large(prefill, 32, 1);
  ASSERT_OK(prefill.Plan());
  EXPECT_EQ(prefill.At(large.product), "gpu 1.wgt0");
  EXPECT_EQ(prefill.At(large.store), "gpu 1.vsrc");
  EXPECT_EQ(prefill.At(large.norm), "gpu 2.sup");
  EXPECT_THAT(prefill.result().plan.remarks, IsEmpty());
}

TEST(Batch, TheUsersRanges_WinOverThoseOfTheDevices) {
  PlanRig rig(Unified());
  const MiniLayer layer(rig, 1, 1);
  rig.input.batch_ranges = {{1, 100}, {101, 200}};
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(layer.product), "gpu 1.wgt0");
  rig.input.batch_ranges = {{2, 100}};  // the others as the devices say
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(layer.product), "cpu 1.bat");
}

TEST(Batch, PackedWeights_StayAndTheRemarkNamesTheLayout) {
  std::vector<RigDevice> devices = Unified();
  devices[0].options.layout = "q4_0 tiles of 32";
  PlanRig rig(devices);
  const MiniLayer layer(rig, 1, 0);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(layer.product), "gpu 1.wgt0");
  EXPECT_THAT(rig.result().plan.remarks,
              ElementsAre("gpu runs batches of 1 that it does not ask for: cpu cannot read gpu "
                          "memory, packed as q4_0 tiles of 32 for gpu"));
}

TEST(Batch, NobodyElseTakesThem_IsRemarkedOnce) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.preferred_batch = {32, 64};
  RigDevice cpu = Cpu("cpu");
  cpu.options.preferred_batch = {2, 31};
  PlanRig rig({gpu, cpu});
  const MiniLayer layer(rig, 1, 0);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(layer.product), "gpu 1.wgt0");
  EXPECT_THAT(rig.result().plan.remarks,
              ElementsAre(HasSubstr("gpu runs batches of 1 that it does not ask for: no other")));
}

TEST(Batch, RuleOff_TheFirstReaderComputes) {
  PlanRig rig(Unified());
  const MiniLayer layer(rig, 1, 1);
  rig.input.options.disabled.Add(Rule::kBatch);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(layer.product), "gpu 1.wgt0");
}

// A device outside its batches computes what it must, and spreads no further than a processor does.
TEST(Batch, OutsideItsBatches_ADeviceDoesNotSpread) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.preferred_batch = {32, 64};
  PlanRig rig({gpu, Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", {8, 8, 1, 1}, 1), rig.Input("x", {8, 1, 1, 1}));
  const NodeId b = rig.g.Unary(a, UnaryKind::kSilu);
  const NodeId c = rig.g.MulMat(rig.Weight("c", {8, 8, 1, 1}, 0), b);
  rig.g.MarkOutput(c);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(c), "gpu 1.wgt0");
  EXPECT_EQ(rig.At(b), "cpu 2.sup");
  rig.input.batch = 32;
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(b), "gpu 2.sup");
}

}  // namespace
}  // namespace weft
