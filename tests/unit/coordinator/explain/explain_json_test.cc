#include "coordinator/explain/explain_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using Json = nlohmann::json;

TEST(ExplainJson, SaysWhatTheReportSays) {
  const ExplainModel model(4);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  ExplainOptions options;
  options.placement.n_gpu_layers = 2;
  const ExplainReport report = Explained(model, devices, options);
  const Json json = Json::parse(ExplainJson(report, {}));
  EXPECT_EQ(json["weft_explain"], kExplainJsonVersion);
  EXPECT_EQ(json["options"]["batch"], 64);
  EXPECT_EQ(json["devices"].size(), 3U);
  EXPECT_EQ(json["devices"][0]["sum_bytes"], report.devices[0].Sum());
  EXPECT_TRUE(json["devices"][0]["batch"]["max"].is_null());
  EXPECT_EQ(json["placement"]["layers"].size(), 4U);
  EXPECT_EQ(json["placement"]["layers"][0], "w0.cpu0");
  EXPECT_EQ(json["placement"]["output"], "w0.gpu0");
  EXPECT_EQ(json["weights"].size(), report.weights.size());
  EXPECT_EQ(json["caches"].size(), 8U);
  for (const ExplainPhase& phase : report.phases) {
    const Json& shown = json["phases"][phase.name];
    EXPECT_EQ(shown["counts"]["splits"], phase.splits.size());
    EXPECT_EQ(shown["passes"].size(), 5U);
    EXPECT_FALSE(shown["passes"][0].contains("seconds"));
    ASSERT_EQ(shown["nodes"].size(), phase.nodes.size());
    for (size_t i = 0; i < phase.nodes.size(); ++i) {
      EXPECT_EQ(shown["nodes"][i]["id"], phase.nodes[i].id);
      EXPECT_EQ(shown["nodes"][i]["cause"], phase.nodes[i].cause);
      EXPECT_EQ(shown["nodes"][i]["device"], report.devices[phase.nodes[i].device].name);
    }
    EXPECT_TRUE(shown["passes"][0]["changes"][0]["from"].is_null());
  }
  EXPECT_EQ(json["remarks"].size(), report.remarks.size());
}

TEST(ExplainJson, Timings_OnRequest) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  const Json json = Json::parse(ExplainJson(Explained(model, devices), {.timings = true}));
  EXPECT_TRUE(json["phases"]["decode"]["passes"][0]["seconds"].is_number());
}

TEST(ExplainJson, NamesThatAreNotUtf8_AreRepaired) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("local.cpu0");
  ExplainReport report = Explained(model, devices);
  report.model = "bad \xff\xfe \"name\"\n";
  const Json json = Json::parse(ExplainJson(report, {}));
  EXPECT_EQ(json["model"]["name"], "bad \xEF\xBF\xBD\xEF\xBF\xBD \"name\"\n");
}

}  // namespace
}  // namespace weft
