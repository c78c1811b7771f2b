// The page's toggles and data. What a browser makes of it is in tests/integration.
#include "coordinator/explain/explain_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/explain/explain_variants.h"
#include "coordinator/explain/page_data.h"
#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

ExplainDevices OneGpu() {
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  return devices;
}

std::vector<std::string> LabelsOf(const ExplainToggle& toggle) {
  std::vector<std::string> labels;
  labels.reserve(toggle.choices.size());
  for (const ExplainChoice& choice : toggle.choices) labels.push_back(choice.label);
  return labels;
}

// The data between the tags of the page.
Json DataOf(const std::string& page) {
  const std::string tag = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(tag) + tag.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(ExplainToggles, OneCpu_None) {
  const ExplainModel model(4);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  EXPECT_TRUE(MakeExplainToggles(*model.model, devices.list(), {}).empty());
  EXPECT_EQ(CombineToggles({}, {}).size(), 1U);
}

TEST(ExplainToggles, Given_IsWhatTheOptionsSay) {
  const ExplainModel model(4, 8);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.placement.n_gpu_layers = 3;
  options.placement.n_cpu_moe = 2;
  options.placement.kv_offload = false;
  options.placement.overrides = {{"x", "cpu"}};
  options.plan.op_offload = false;
  const auto toggles = MakeExplainToggles(*model.model, devices.list(), options);
  ASSERT_EQ(toggles.size(), 5U);
  EXPECT_THAT(LabelsOf(toggles[0]), ElementsAre("all", "3", "0"));
  EXPECT_THAT(LabelsOf(toggles[3]), ElementsAre("with layer", "--n-cpu-moe 2", "--cpu-moe"));
  // Applying what is given changes nothing.
  ExplainOptions same = options;
  for (const ExplainToggle& toggle : toggles) toggle.choices[toggle.given].apply(same);
  EXPECT_EQ(same.placement.n_gpu_layers, 3);
  EXPECT_EQ(same.placement.n_cpu_moe, 2);
  EXPECT_FALSE(same.placement.cpu_moe);
  EXPECT_FALSE(same.placement.kv_offload);
  EXPECT_FALSE(same.plan.op_offload);
  EXPECT_EQ(same.placement.overrides.size(), 1U);
}

TEST(ExplainToggles, LayersGiven_AreAmongTheChoices) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  const auto given = [&](int64_t layers) {
    options.placement.n_gpu_layers = layers;
    const ExplainToggle toggle = MakeExplainToggles(*model.model, devices.list(), options)[0];
    return toggle.choices[toggle.given].label;
  };
  EXPECT_EQ(given(-1), "all");
  EXPECT_EQ(given(0), "0");
  EXPECT_EQ(given(1), "1");
  EXPECT_EQ(given(4), "4");
  EXPECT_EQ(given(99), "all");
}

TEST(ExplainToggles, Combinations_LastChangesFastest) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  const auto toggles = MakeExplainToggles(*model.model, devices.list(), {});
  const std::vector<ExplainOptions> all = CombineToggles(toggles, {});
  ASSERT_EQ(all.size(), 3U * 2 * 2);
  EXPECT_TRUE(all[0].placement.kv_offload);
  EXPECT_FALSE(all[1].placement.kv_offload);
  EXPECT_TRUE(all[1].plan.op_offload);
  EXPECT_FALSE(all[2].plan.op_offload);
  EXPECT_EQ(all[11].placement.n_gpu_layers, 0);
}

TEST(ExplainPage, EveryCombinationIsInTheData) {
  const ExplainModel model(4);
  const ExplainDevices devices = OneGpu();
  ExplainOptions options;
  options.context = 256;
  options.batch = 64;
  const ExplainReport report = Explained(model, devices, options);
  const Json data = DataOf(ExplainPage(report, *model.model, devices.list(), options));
  ASSERT_EQ(data["variants"].size(), 12U);
  for (const Json& variant : data["variants"]) {
    ASSERT_EQ(variant["phases"].size(), 2U);
    for (const Json& plan : variant["phases"]) EXPECT_LT(plan, data["plans"].size());
  }
  // Decode without offload is decode with it: kept once.
  EXPECT_EQ(data["variants"][0]["phases"][1], data["variants"][2]["phases"][1]);
  EXPECT_LT(data["plans"].size(), 24U);
  const Json& plan = data["plans"][data["variants"][0]["phases"][0].get<size_t>()];
  EXPECT_EQ(plan["splits"].size(), report.phases[0].splits.size());
  EXPECT_EQ(data["graphs"][plan["graph"].get<size_t>()]["ops"].size(),
            report.phases[0].nodes.size());
}

TEST(ExplainPage, NamesNeverEndTheScript) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  ExplainReport report = Explained(model, devices);
  const std::string hostile = "</script><script>alert(1)</script>&\xff\xe2\x80\xa8";
  report.model = hostile;
  report.devices[0].name = hostile;
  report.phases[0].nodes[0].label = hostile;
  report.remarks.push_back({"memory", "", hostile, hostile});
  PageData data(report, {});
  data.Add(report);
  data.AddRefused(hostile);
  const std::string text = data.Text();
  const auto forbidden = [](char c) {
    return c == '<' || c == '>' || c == '&' || static_cast<unsigned char>(c) >= 0x80;
  };
  EXPECT_TRUE(std::none_of(text.begin(), text.end(), forbidden));
  const Json json = Json::parse(text);
  EXPECT_EQ(json["model"]["name"], "</script><script>alert(1)</script>&\xEF\xBF\xBD\xe2\x80\xa8");
  EXPECT_EQ(json["variants"][1]["refused"], json["model"]["name"]);
}

}  // namespace
}  // namespace weft
