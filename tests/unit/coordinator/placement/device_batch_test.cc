#include "coordinator/placement/device_batch.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/placement/placement_rig.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ParseDeviceBatches, Ranges_HaveBothEnds) {
  ASSERT_OK_AND_ASSIGN(const auto rules,
                       ParseDeviceBatches("w0.gpu0:32-,cpu:-31,w1.gpu0:8-64,w2.gpu0:1"));
  EXPECT_THAT(rules,
              ElementsAre(DeviceBatchRule{"w0.gpu0", {32, kMax}}, DeviceBatchRule{"cpu", {1, 31}},
                          DeviceBatchRule{"w1.gpu0", {8, 64}}, DeviceBatchRule{"w2.gpu0", {1, 1}}));
  EXPECT_THAT(*ParseDeviceBatches(""), IsEmpty());
}

TEST(ParseDeviceBatches, BadItems_AreNamed) {
  for (const char* item :
       {"cpu", "cpu:", ":1", "cpu:-", "cpu:0", "cpu:-0", "cpu:9-8", "cpu:a-b", "cpu:1-2-3",
        "cpu:--3", "cpu:+3", "cpu:1-+3", "cpu: 1", "cpu:1.5", "cpu:99999999999999999999"}) {
    EXPECT_THAT(ParseDeviceBatches(std::string("w0.gpu0:1,") + item),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string("--device-batch: '") + item + "': want")))
        << item;
  }
  EXPECT_FALSE(ParseDeviceBatches(",").ok());
  EXPECT_FALSE(ParseDeviceBatches("cpu:1,").ok());
}

TEST(ResolveDeviceBatches, RulesGoToDevices_OthersPrefer) {
  const NullDevices devices({"w0.gpu0:8", "w1.gpu0:8", "w0.cpu0", "local.cpu0"});
  const DeviceBatchRule rules[] = {{"w0.gpu0", {64, kMax}}, {"cpu", {1, 8}}, {"w0.gpu0", {9, 63}}};
  ASSERT_OK_AND_ASSIGN(const auto ranges, ResolveDeviceBatches(rules, devices.list()));
  EXPECT_THAT(ranges,
              ElementsAre(BatchRange{9, kMax}, BatchRange{}, BatchRange{1, 8}, BatchRange{1, 8}));
}

TEST(ResolveDeviceBatches, Conflicts_AreErrors) {
  const NullDevices devices({"w0.gpu0:8", "w0.cpu0", "local.cpu0"});
  const auto resolve = [&](const std::vector<DeviceBatchRule>& rules) {
    return ResolveDeviceBatches(rules, devices.list());
  };
  EXPECT_THAT(
      resolve({{"w0.gpu0", {1, 32}}, {"w0.gpu0", {32, kMax}}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1-32 and 32- of w0.gpu0 overlap")));
  EXPECT_THAT(resolve({{"cpu", {1, 32}}, {"local.cpu0", {4, 4}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1-32 and 4-4 of local.cpu0 overlap")));
  EXPECT_THAT(resolve({{"cpu", {64, kMax}}, {"local.cpu0", {1, 8}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1-8 and 64- of local.cpu0 leave a gap")));
  EXPECT_THAT(resolve({{"w0.gpu0", {1, kMax}}, {"w0.gpu0", {1, kMax}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlap")));
  EXPECT_THAT(resolve({{"gpu", {1, 8}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no device 'gpu'"),
                             HasSubstr("cpu, w0.gpu0, w0.cpu0, local.cpu0"))));
}

}  // namespace
}  // namespace weft
