// What a report says about models on null devices.
#include "coordinator/explain/explain_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

ExplainDevices TwoWorkers() {
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Gpu("w1.gpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  return devices;
}

// Replaying what the passes changed gives where the nodes are; splits are runs of them.
void CheckConsistent(const ExplainReport& report) {
  for (const ExplainPhase& phase : report.phases) {
    std::vector<int32_t> places(phase.nodes.size(), kNoDevice);
    std::vector<std::string> causes(phase.nodes.size());
    for (const ExplainPass& pass : phase.passes) {
      for (const ExplainChange& change : pass.changes) {
        EXPECT_EQ(places[change.node], change.from);
        places[change.node] = change.to;
        causes[change.node] = change.cause;
        EXPECT_FALSE(change.why.empty());
      }
    }
    for (size_t i = 0; i < phase.nodes.size(); ++i) {
      EXPECT_EQ(places[i], phase.nodes[i].device);
      EXPECT_EQ(causes[i], phase.nodes[i].cause);
    }
    int32_t at = 0;
    for (size_t s = 0; s < phase.splits.size(); ++s) {
      const ExplainSplit& split = phase.splits[s];
      EXPECT_EQ(split.begin, at);
      EXPECT_LT(split.begin, split.end);
      for (at = split.begin; at < split.end; ++at) {
        EXPECT_EQ(phase.nodes[at].split, static_cast<int32_t>(s));
        EXPECT_EQ(phase.nodes[at].device, split.device);
      }
    }
    EXPECT_EQ(at, static_cast<int32_t>(phase.nodes.size()));
    for (const ExplainArena& arena : phase.arenas) EXPECT_GE(arena.bytes, arena.lower_bound);
  }
}

const ExplainNode* FindNode(const ExplainPhase& phase, const std::string& label) {
  const auto found = std::find_if(phase.nodes.begin(), phase.nodes.end(),
                                  [&](const ExplainNode& node) { return node.label == label; });
  return found == phase.nodes.end() ? nullptr : &*found;
}

TEST(ExplainReport, OneCpu_OneSplitWithoutCopies) {
  const ExplainModel model(4);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  const ExplainReport report = Explained(model, devices);
  CheckConsistent(report);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].name, "prefill");
  EXPECT_EQ(report.phases[0].tokens, 64);
  EXPECT_EQ(report.phases[1].name, "decode");
  EXPECT_EQ(report.phases[1].tokens, 1);
  for (const ExplainPhase& phase : report.phases) {
    EXPECT_EQ(phase.splits.size(), 1U);
    EXPECT_EQ(phase.copies, 0);
    ASSERT_EQ(phase.processes.size(), 1U);
    EXPECT_EQ(phase.processes[0].executes, 1);
    EXPECT_EQ(phase.processes[0].replies, 1);
  }
  EXPECT_TRUE(report.remarks.empty());
}

TEST(ExplainReport, TwoWorkers_OneTensorCrossesAndOneMessageEachWay) {
  const ExplainModel model(6);
  const ExplainDevices devices = TwoWorkers();
  const ExplainReport report = Explained(model, devices);
  CheckConsistent(report);
  const ExplainPhase& decode = report.phases[1];
  ASSERT_EQ(decode.splits.size(), 3U);
  EXPECT_EQ(report.devices[decode.splits[0].device].name, "w0.cpu0");
  EXPECT_EQ(report.devices[decode.splits[1].device].name, "w0.gpu0");
  EXPECT_EQ(report.devices[decode.splits[2].device].name, "w1.gpu0");
  ASSERT_EQ(decode.processes.size(), 2U);
  EXPECT_EQ(decode.processes[0].sends, 1);
  EXPECT_EQ(decode.processes[0].sent_bytes, 64 * 4);
  EXPECT_EQ(decode.processes[1].receives, 1);
  EXPECT_EQ(decode.processes[1].received_bytes, 64 * 4);
  EXPECT_EQ(decode.processes[1].executes, 1);
  EXPECT_EQ(FindRemark(report, "hand-off"), nullptr);
}

TEST(ExplainReport, Memory_SumsOfWhatIsThere) {
  const ExplainModel model(6);
  const ExplainDevices devices = TwoWorkers();
  const ExplainReport report = Explained(model, devices);
  std::vector<int64_t> weights(report.devices.size());
  std::vector<int64_t> caches(report.devices.size());
  for (const ExplainWeight& weight : report.weights) weights[weight.device] += weight.bytes;
  for (const ExplainCache& cache : report.caches) {
    // 16 pages of the context and one for padding, two heads of 32 elements.
    EXPECT_EQ(cache.bytes, 17 * 16 * 2 * 32 * 2);
    caches[cache.device] += cache.bytes;
  }
  for (size_t d = 0; d < report.devices.size(); ++d) {
    EXPECT_EQ(report.devices[d].weight_bytes, weights[d]);
    EXPECT_EQ(report.devices[d].cache_bytes, caches[d]);
    EXPECT_EQ(report.devices[d].arena_bytes,
              std::max(report.phases[0].arenas[d].bytes, report.phases[1].arenas[d].bytes));
  }
  EXPECT_GT(report.devices[0].arena_bytes, 0);
  EXPECT_EQ(report.devices[0].memory_bytes, int64_t{8} << 30);
}

TEST(ExplainReport, SharedTensor_CountsOncePerDevice) {
  const ExplainModel model(2, 0, /*tied=*/true);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  const ExplainReport report = Explained(model, devices);
  int64_t bytes = 0;
  const auto output =
      std::find_if(report.weights.begin(), report.weights.end(),
                   [](const ExplainWeight& w) { return w.name == "output.weight"; });
  ASSERT_NE(output, report.weights.end());
  EXPECT_EQ(output->tensor, "token_embd.weight");
  for (const ExplainWeight& weight : report.weights) bytes += weight.bytes;
  EXPECT_EQ(report.devices[0].weight_bytes, bytes - output->bytes);
}

TEST(ExplainReport, OpOffload_PlacesPromptAndDecodeDifferently) {
  const ExplainModel model(4);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.n_gpu_layers = 2;
  const ExplainReport report = Explained(model, devices, options);
  CheckConsistent(report);
  const ExplainNode* prompt = FindNode(report.phases[0], "blk.0.ffn_up.weight");
  const ExplainNode* decode = FindNode(report.phases[1], "blk.0.ffn_up.weight");
  ASSERT_NE(prompt, nullptr);
  ASSERT_NE(decode, nullptr);
  EXPECT_EQ(report.devices[prompt->device].name, "w0.gpu0");
  EXPECT_EQ(prompt->cause, "1.off");
  EXPECT_EQ(report.devices[decode->device].name, "w0.cpu0");
  EXPECT_EQ(decode->cause, "1.wgt0");
  EXPECT_THAT(decode->why, HasSubstr("blk.0.ffn_up.weight"));
  EXPECT_GT(report.phases[0].staged_bytes, 0);
  EXPECT_EQ(report.phases[1].staged_bytes, 0);

  options.plan.op_offload = false;
  const ExplainReport off = Explained(model, devices, options);
  EXPECT_EQ(FindNode(off.phases[0], "blk.0.ffn_up.weight")->cause, "1.wgt0");
}

TEST(ExplainReport, CpuMoe_ExpertsRunOnTheHost) {
  const ExplainModel model(4, 8);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.cpu_moe = true;
  const ExplainReport report = Explained(model, devices, options);
  CheckConsistent(report);
  EXPECT_EQ(report.experts, 8);
  std::set<std::string> decode;
  for (const ExplainNode& node : report.phases[1].nodes) {
    if (node.op == Op::kMulMatId) decode.insert(report.devices[node.device].name);
  }
  EXPECT_THAT(decode, ::testing::ElementsAre("w0.cpu0"));
  const auto experts = std::find_if(
      report.phases[0].splits.begin(), report.phases[0].splits.end(), [](const ExplainSplit& s) {
        return !s.inputs.empty() && s.inputs[0].kind == ReplicaKind::kExperts;
      });
  EXPECT_NE(experts, report.phases[0].splits.end());
}

TEST(ExplainReport, EqualInput_EqualReportButForTheTimes) {
  const ExplainModel model(3);
  const ExplainDevices devices = TwoWorkers();
  const SystemClock clock;
  ExplainOptions options;
  EXPECT_EQ(Explained(model, devices).phases[0].passes[0].seconds, 0);
  options.clock = &clock;
  EXPECT_GT(Explained(model, devices, options).phases[0].passes[0].seconds, 0);
}

TEST(ExplainReport, BadOptions_NameTheFlag) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  const auto check = [&](const ExplainOptions& options, const std::string& text) {
    const auto report = MakeExplainReport(*model.model, devices.list(), options);
    EXPECT_THAT(report.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  check({.batch = 0}, "--batch");
  check({.batch = 300, .context = 256}, "--batch");
  check({.sequences = 0}, "--sequences");
  check({.context = 0}, "-c");
  check({.context = int64_t{1} << 40}, "-c");
  check({.key_type = DType::kQ4_0}, "-ctk");
  check({.value_type = DType::kI32}, "-ctv");
  ExplainOptions layers;
  layers.placement.main_device = "w7.gpu0";
  check(layers, "--main-device");
}

}  // namespace
}  // namespace weft
