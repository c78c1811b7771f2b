// Every remark: that it is there, and that it is not where nothing is wrong.
#include "coordinator/explain/explain_remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A worker with a GPU that refuses what `refuses` says, and the coordinator's CPU.
ExplainDevices OneGpu(std::function<bool(const Graph&, NodeId)> refuses = nullptr,
                      int64_t memory_bytes = int64_t{8} << 30, int64_t offload_batch = 32) {
  NullDeviceOptions options;
  options.name = "w0.gpu0";
  options.host = "w0";
  options.memory_bytes = memory_bytes;
  options.offload_batch = offload_batch;
  options.capabilities.async = true;
  options.capabilities.events = true;
  if (refuses) {
    options.supports = [refuses = std::move(refuses)](const Graph& graph, NodeId id) -> Support {
      return refuses(graph, id) ? absl::UnimplementedError("not on this toy") : absl::OkStatus();
    };
  }
  ExplainDevices devices;
  devices.Add(std::move(options)).Cpu("w0.cpu0").Cpu("local.cpu0");
  return devices;
}

void ExpectRemark(const ExplainReport& report, const std::string& code,
                  const ::testing::Matcher<std::string>& text) {
  const ExplainRemark* remark = FindRemark(report, code);
  ASSERT_NE(remark, nullptr) << code;
  EXPECT_THAT(remark->text, text);
  EXPECT_NE(remark->action, "");
}

TEST(ExplainRemarks, EverythingOnOneGpu_Nothing) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  const ExplainReport report = Explained(model, devices);
  EXPECT_GT(report.phases[0].rotating_copies, 1);
  EXPECT_GT(report.devices[1].crossing_bytes, 0);
  EXPECT_TRUE(report.remarks.empty());
}

TEST(ExplainRemarks, DeviceWithoutEvents_StepsDoNotOverlap) {
  const ExplainModel model(4);
  NullDeviceOptions options;
  options.name = "w0.gpu0";
  options.host = "w0";
  options.capabilities.async = true;
  ExplainDevices devices;
  devices.Add(std::move(options)).Cpu("w0.cpu0").Cpu("local.cpu0");
  const ExplainReport report = Explained(model, devices);
  ExpectRemark(report, "pipeline", HasSubstr("w0.gpu0 has no events"));
  EXPECT_EQ(FindRemark(report, "pipeline")->phase, "");  // of both phases
}

TEST(ExplainRemarks, RefusedOperation_ManySplitsAndWhy) {
  const ExplainModel model(8);
  // Neither the fused operation nor its plain form.
  const ExplainDevices devices = OneGpu([](const Graph& graph, NodeId id) {
    return graph.node(id).op == Op::kGlu || graph.node(id).op == Op::kUnary;
  });
  const ExplainReport report = Explained(model, devices);
  ASSERT_FALSE(report.phases[1].cuts.empty());
  const ExplainCut& cut = report.phases[1].cuts[0];
  EXPECT_EQ(cut.op, Op::kGlu);
  EXPECT_EQ(cut.count, 8);
  EXPECT_TRUE(cut.refused);
  ExpectRemark(report, "splits",
               AllOf(HasSubstr("18 splits for 3 devices"),
                     HasSubstr("8 x glu on w0.cpu0: w0.gpu0 refuses it: not on this toy")));
  EXPECT_FALSE(FindRemark(report, "splits")->action.empty());
}

TEST(ExplainRemarks, ExpertsOnTheHost_ManySplitsInDecodeOnly) {
  const ExplainModel model(8, 8);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.cpu_moe = true;
  const ExplainReport report = Explained(model, devices, options);
  const ExplainCut& cut = report.phases[1].cuts.at(0);
  EXPECT_EQ(cut.op, Op::kMulMatId);
  EXPECT_EQ(cut.count, 8);
  EXPECT_FALSE(cut.refused);
  ExpectRemark(report, "splits", HasSubstr("8 x mul_mat_id on w0.cpu0: its weight"));
  EXPECT_EQ(FindRemark(report, "splits")->phase, "decode");
}

TEST(ExplainRemarks, CachesInHostMemory_AreNamedWithTheFlag) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.kv_offload = false;
  ExpectRemark(Explained(model, devices, options), "kv-in-host-memory",
               AllOf(HasSubstr("--no-kv-offload"), HasSubstr("host memory")));
}

TEST(ExplainRemarks, RuleThatMatchesNothing_IsNamed) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.overrides = {{"no_such_tensor", "cpu"}};
  ExpectRemark(Explained(model, devices, options), "rule", HasSubstr("no_such_tensor"));
}

TEST(ExplainRemarks, RefusedWeightType_SaysWhereTheWeightsAre) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu([](const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    return node.op == Op::kMulMat && graph.layout(node.sources[0]).dtype == DType::kQ8_0;
  });
  ExpectRemark(Explained(model, devices), "refused-type",
               AllOf(HasSubstr("w0.gpu0 refuses Q8_0"), HasSubstr("w0.cpu0 instead")));
}

TEST(ExplainRemarks, DeviceWithoutLayers_IsNamed) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Gpu("w1.gpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.tensor_split = {1, 0};
  ExpectRemark(Explained(model, devices, options), "idle-device",
               HasSubstr("w1.gpu0 holds nothing"));
}

TEST(ExplainRemarks, WeightsCopiedInEveryDecodeStep_BytesPerToken) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu(nullptr, int64_t{8} << 30, /*offload_batch=*/1);
  ExplainOptions options;
  options.placement.n_gpu_layers = 1;
  options.sequences = 2;
  const ExplainReport report = Explained(model, devices, options);
  EXPECT_GT(report.phases[1].staged_bytes, 0);
  ExpectRemark(report, "staged-weights", HasSubstr("for each token"));
  EXPECT_EQ(FindRemark(report, "staged-weights")->phase, "decode");
  options.plan.op_offload = false;
  EXPECT_EQ(FindRemark(Explained(model, devices, options), "staged-weights"), nullptr);
}

TEST(ExplainRemarks, MoreMemoryThanThereIs_SaysWhatTakesIt) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu(nullptr, 300 << 10);
  const ExplainReport report = Explained(model, devices);
  ASSERT_GT(report.devices[0].Sum(), 300 << 10);
  ExpectRemark(report, "memory", HasSubstr("w0.gpu0 has 300.00 KiB and needs"));
}

TEST(ExplainRemarks, OutputMatrixElsewhere_IsASurprise) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.overrides = {{"^output\\.weight$", "cpu"}};
  ExpectRemark(Explained(model, devices, options), "output-layer",
               HasSubstr("the output layer is on w0.gpu0, but its product runs on w0.cpu0"));
}

TEST(ExplainRemarks, EmbeddingElsewhere_IsASurprise) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.overrides = {{"^token_embd", "w0.gpu0"}};
  ExpectRemark(Explained(model, devices, options), "input-layer",
               HasSubstr("looked up on w0.gpu0, not on the input layer's w0.cpu0"));
}

ExplainDevices TwoWorkers() {
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Gpu("w1.gpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  return devices;
}

TEST(ExplainRemarks, LayerThatEndsOnTheHost_HandsOneTensorOn) {
  const ExplainModel model(6, 8);
  const ExplainDevices devices = TwoWorkers();
  ExplainOptions options;
  options.placement.cpu_moe = true;
  const ExplainReport report = Explained(model, devices, options);
  ASSERT_EQ(report.phases[1].processes.size(), 2U);
  EXPECT_EQ(report.phases[1].processes[0].sends, 1);
  EXPECT_EQ(FindRemark(report, "hand-off"), nullptr);
}

TEST(ExplainRemarks, LayerOnTwoMachines_SeveralTensorsCross) {
  const ExplainModel model(6, 8);
  const ExplainDevices devices = TwoWorkers();
  ExplainOptions options;
  options.placement.overrides = {{"blk\\.1\\.ffn_up", "w1.gpu0"}};
  const ExplainReport report = Explained(model, devices, options);
  EXPECT_GT(report.phases[1].processes[0].sends, 1);
  ExpectRemark(report, "hand-off", HasSubstr("tensors go from w0 to w1 in each step where 1"));
}

TEST(ExplainRemarks, AcceleratorThatTakesNothing_IsNamed) {
  const ExplainModel model(2);  // of Q8_0 weights, which it does not take
  ExplainDevices devices;
  devices.BlasAndCpu("local");
  ExpectRemark(Explained(model, devices), "idle-accelerator", HasSubstr("local.blas0"));
}

}  // namespace
}  // namespace weft
