#include "coordinator/engine/rank_links.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/null_device.h"
#include "coordinator/meta/meta_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

// Ranks on hosts "w0", "w1", ...
class RankLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) {
      NullDeviceOptions options;
      options.host = absl::StrCat("w", i);
      options.name = absl::StrCat("w", i, ".gpu0");
      devices_.push_back(std::make_unique<NullDevice>(options));
    }
    const auto group = [&](const char* name, int first) {
      return MetaDevice::Create(name, {devices_[first].get(), devices_[first + 1].get()});
    };
    ASSERT_OK_AND_ASSIGN(first_, group("tp0", 0));
    ASSERT_OK_AND_ASSIGN(second_, group("tp1", 2));
    list_ = {first_.get(), second_.get(), devices_[0].get()};
  }

  std::vector<std::unique_ptr<NullDevice>> devices_;
  std::unique_ptr<MetaDevice> first_;
  std::unique_ptr<MetaDevice> second_;
  std::vector<Device*> list_;
};

TEST_F(RankLinksTest, OfEachGroup_TheSlowestKnownLink) {
  const std::vector<LinkModels> links = RankLinks(list_, {{"w0", "w1", {7, 2e9}},
                                                          {"w1", "w0", {9, 3e9}},
                                                          {"w1", "w2", {1000, 1e6}},
                                                          {"w3", "w3", {1000, 1e6}}});
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0].outer, (LinkModel{9, 2e9}));
  EXPECT_EQ(links[0].inner, LinkModels{}.inner);
  EXPECT_EQ(links[1], LinkModels{});
  EXPECT_EQ(links[2], LinkModels{});
}

// Two machines with two hosts each.
TEST_F(RankLinksTest, LinksWithinAMachine_AreInner) {
  std::vector<std::unique_ptr<NullDevice>> devices;
  std::vector<Device*> ranks;
  for (int i = 0; i < 4; ++i) {
    NullDeviceOptions options;
    options.host = absl::StrCat("w", i);
    options.machine = absl::StrCat("machine ", i / 2);
    options.name = absl::StrCat("w", i, ".gpu0");
    ranks.push_back(devices.emplace_back(std::make_unique<NullDevice>(options)).get());
  }
  ASSERT_OK_AND_ASSIGN(const auto group, MetaDevice::Create("tp0", ranks));
  const HostLink first{"w0", "w1", {3, 5e9}};
  const HostLink second{"w3", "w2", {4, 6e9}};
  const HostLink across{"w1", "w2", {40, 1e9}};
  EXPECT_EQ(RankLinks({group.get()}, {first, across, second})[0],
            (LinkModels{{4, 5e9}, {40, 1e9}}));
  EXPECT_EQ(RankLinks({group.get()}, {second})[0], (LinkModels{{4, 6e9}, LinkModels{}.outer}));
}

TEST_F(RankLinksTest, NonsenseIsNotKnown) {
  for (const LinkModel& link :
       {LinkModel{7, 0}, LinkModel{-1, 1e9}, LinkModel{NAN, 1e9}, LinkModel{1, NAN}}) {
    EXPECT_EQ(RankLinks(list_, {{"w0", "w1", link}})[0], LinkModels{});
  }
}

}  // namespace
}  // namespace weft
