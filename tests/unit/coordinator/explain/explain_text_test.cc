#include "coordinator/explain/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/explain/layer_groups.h"
#include "coordinator/explain/memory_text.h"
#include "coordinator/explain/text_table.h"
#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MemoryText, UnitsFitTheSize) {
  EXPECT_EQ(MemoryText(0), "0 B");
  EXPECT_EQ(MemoryText(1023), "1023 B");
  EXPECT_EQ(MemoryText(1536), "1.50 KiB");
  EXPECT_EQ(MemoryText(int64_t{80} << 30), "80.00 GiB");
}

TEST(TextTable, ColumnsAlignAndLastWordsPushNothing) {
  TextTable table("lrl");
  EXPECT_TRUE(table.empty());
  table.AddRow({"a", "10", "x"});
  table.AddRow({"much longer than any"});
  table.AddRow({"bé", "1", "y"});
  EXPECT_EQ(table.Text(1), " a   10  x\n much longer than any\n bé   1  y\n");
}

TEST(LayerGroups, EqualLayersAreOneGroup) {
  const ExplainModel model(6);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Gpu("w1.gpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  const ExplainReport report = Explained(model, devices);
  std::vector<std::string> names;
  for (const LayerGroup& group : GroupLayers(report.phases[0])) {
    names.push_back(LayerGroupName(group, names.empty()));
  }
  // The last layer keeps only the rows that want logits.
  EXPECT_THAT(names,
              ::testing::ElementsAre("input", "blk.0..3 (4 layers)", "blk.4", "blk.5", "output"));
}

TEST(ExplainText, EqualReports_EqualText) {
  const ExplainModel model(4, 8);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.cpu_moe = true;
  const std::string text = ExplainText(Explained(model, devices, options), {});
  EXPECT_EQ(text, ExplainText(Explained(model, devices, options), {}));
  EXPECT_THAT(text, HasSubstr("4 layers, 8 experts"));
  EXPECT_THAT(text, HasSubstr("on w0.cpu0: --cpu-moe (first blk.0.ffn_gate_exps.weight)"));
  EXPECT_THAT(text, ContainsRegex("blk.0..2 .3 layers.: +w0.gpu0 .*\n +w0.cpu0 +4 nodes"));
  EXPECT_THAT(text, Not(HasSubstr(" ms")));
  EXPECT_THAT(ExplainText(Explained(model, devices, options), {.timings = true}), HasSubstr(" ms"));
}

TEST(ExplainText, Nodes_ALineForEach) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  const ExplainReport report = Explained(model, devices);
  const std::string brief = ExplainText(report, {});
  EXPECT_THAT(brief, HasSubstr("every node as in prefill"));
  EXPECT_THAT(brief, Not(HasSubstr("blk.1.ffn_up.weight")));
  EXPECT_THAT(ExplainText(report, {.nodes = true}),
              ContainsRegex("mul_mat +local.cpu0 +1.wgt0 +blk.1.ffn_up.weight +its weight"));
}

TEST(ExplainText, ManySplits_AreCutShort) {
  const ExplainModel model(12, 8);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.cpu_moe = true;
  const ExplainReport report = Explained(model, devices, options);
  ASSERT_EQ(report.phases[1].splits.size(), 26U);
  EXPECT_THAT(ExplainText(report, {}), HasSubstr("and 10 more; --nodes shows all"));
  EXPECT_THAT(ExplainText(report, {.nodes = true}), Not(HasSubstr("--nodes shows all")));
}

TEST(ExplainText, HostileNames_StayInTheirLine) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  ExplainReport report = Explained(model, devices);
  const std::string hostile = "\x1b[31mred\nremarks: none\xff";
  report.model = hostile;
  report.devices[0].name = hostile;
  report.devices[0].host = hostile;
  report.weights[0].with_layer = false;
  report.weights[0].name = hostile;
  report.weights[0].reason = hostile;
  for (ExplainPhase& phase : report.phases) {
    for (ExplainNode& node : phase.nodes) {
      node.label = hostile;
      node.why = hostile;
    }
    phase.splits[0].inputs.push_back({ReplicaKind::kTensor, 0, hostile, 4, 0});
    phase.processes[0].host = hostile;
  }
  report.remarks.push_back({"memory", "", hostile, hostile});
  const std::string text = ExplainText(report, {.nodes = true});
  const auto control = [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 0x20; };
  EXPECT_TRUE(std::none_of(text.begin(), text.end(), control));
  EXPECT_EQ(text.find("\nremarks: none"), std::string::npos);
  EXPECT_NE(text.find("\\x1b[31mred\\n"), std::string::npos);
}

}  // namespace
}  // namespace weft
