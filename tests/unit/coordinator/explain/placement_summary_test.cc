// What the page of a server says about a placement, on null devices.
#include "coordinator/explain/placement_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "coordinator/engine/rank_groups.h"
#include "coordinator/placement/model_placement.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/explain/explain_rig.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Part = SummaryLayers::Part;

PlacementSummary Summary(const ExplainModel& model, const ExplainDevices& devices,
                         PlacementOptions options = {}) {
  PlacedDevices placed;
  placed.devices.assign(devices.list().begin(), devices.list().end());
  const auto groups = GroupDevices(placed, options);
  EXPECT_OK(groups.status());
  placed.placement = *PlaceModel(*model.model, placed.devices, options);
  return *SummarizePlacement(*model.model, placed, {DType::kF16, DType::kF16, 4});
}

TEST(PlacementSummary, TwoWorkers_EachHasARangeOfLayersWithItsReason) {
  const ExplainModel model(4);
  ExplainDevices devices;
  devices.Cpu("w0.cpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  const PlacementSummary summary = Summary(model, devices);
  ASSERT_EQ(summary.layers.size(), 4U);
  EXPECT_EQ(summary.layers[0].part, Part::kInput);
  EXPECT_EQ(summary.layers[1].part, Part::kLayers);
  EXPECT_EQ(summary.layers[1].first, 0);
  EXPECT_EQ(summary.layers[2].first, summary.layers[1].last + 1);
  EXPECT_EQ(summary.layers[2].last, 3);
  EXPECT_EQ(summary.layers[3].part, Part::kOutput);
  EXPECT_EQ(summary.layers[1].device, "w0.cpu0");
  EXPECT_EQ(summary.layers[2].device, "w1.cpu0");
  for (const SummaryLayers& layers : summary.layers) {
    EXPECT_THAT(layers.why, HasSubstr("layer"));
    EXPECT_THAT(layers.why, HasSubstr(layers.device));
  }
  EXPECT_THAT(summary.strays, IsEmpty());
  ASSERT_EQ(summary.devices.size(), 3U);
  EXPECT_EQ(summary.devices[0].host, "w0");
  EXPECT_GT(summary.devices[0].held.weight_bytes, 0);
  EXPECT_GT(summary.devices[1].held.cache_bytes, 0);
  EXPECT_EQ(summary.devices[2].held.weights, 0);
}

TEST(PlacementSummary, WeightsElsewhere_AreCountedByReason) {
  const ExplainModel model(3, 4);
  ExplainDevices devices;
  devices.Gpu("w0.gpu0").Cpu("w0.cpu0").Cpu("local.cpu0");
  PlacementOptions options;
  options.cpu_moe = true;
  options.kv_offload = false;
  const PlacementSummary summary = Summary(model, devices, options);
  ASSERT_EQ(summary.strays.size(), 2U);
  EXPECT_EQ(summary.strays[0].device, "w0.cpu0");
  EXPECT_EQ(summary.strays[0].why, "--cpu-moe");
  EXPECT_EQ(summary.strays[0].count, 9);
  EXPECT_THAT(summary.strays[0].first, HasSubstr("blk.0."));
  EXPECT_EQ(summary.strays[1].count, 6);
  EXPECT_EQ(summary.strays[1].first, "keys of layer 0");
}

TEST(PlacementSummary, Ranks_AreAGroupWithShares) {
  const ExplainModel model(2);
  ExplainDevices devices;
  devices.Cpu("w0.cpu0").Cpu("w1.cpu0").Cpu("local.cpu0");
  PlacementOptions options;
  options.split_mode = SplitMode::kTensor;
  const PlacementSummary summary = Summary(model, devices, options);
  ASSERT_EQ(summary.groups.size(), 1U);
  EXPECT_THAT(summary.groups[0].ranks, ElementsAre("w0.cpu0", "w1.cpu0"));
  EXPECT_THAT(summary.groups[0].shares, ElementsAre(0.5, 0.5));
  EXPECT_EQ(summary.layers[1].device, summary.groups[0].name);
  EXPECT_EQ(summary.layers[1].last, 1);
  EXPECT_GT(summary.devices[0].held.weight_bytes, 0);
  EXPECT_GT(summary.devices[1].held.weight_bytes, 0);
}

}  // namespace
}  // namespace weft
