#include "coordinator/engine/overlap.h"

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

// Groups of two ranks, whose hosts are these, all on one machine if that has a name.
class Groups {
 public:
  explicit Groups(const std::vector<std::string>& hosts, const std::string& machine = "") {
    for (const std::string& host : hosts) {
      NullDeviceOptions options;
      options.host = host;
      options.machine = machine;
      options.name = absl::StrCat(host, ".gpu", devices_.size());
      devices_.push_back(std::make_unique<NullDevice>(options));
    }
    for (size_t i = 0; i + 1 < devices_.size(); i += 2) {
      absl::StatusOr<std::unique_ptr<MetaDevice>> group =
          MetaDevice::Create(absl::StrCat("tp", i), {devices_[i].get(), devices_[i + 1].get()});
      EXPECT_OK(group);
      list.push_back(group->get());
      groups_.push_back(*std::move(group));
    }
    list.push_back(devices_.back().get());
  }

  std::vector<Device*> list;

 private:
  std::vector<std::unique_ptr<NullDevice>> devices_;
  std::vector<std::unique_ptr<MetaDevice>> groups_;
};

TEST(ResolveOverlap, Auto_IsOnWhereRanksReachEachOtherOverANetwork) {
  const Groups apart({"a", "b"});
  const HostLink network{"b", "a", {30, 1e9}, false};
  const HostLink memory{"b", "a", {5, 5e9}, true};
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, apart.list, {network}), OverlapPolicy::kOn);
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, apart.list, {}), OverlapPolicy::kOn);
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, apart.list, {memory}), OverlapPolicy::kOff);
  // One group is enough.
  const Groups two({"a", "b", "c", "d"});
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, two.list, {memory}), OverlapPolicy::kOn);
}

TEST(ResolveOverlap, Auto_IsOffWithoutRanksElsewhere) {
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, Groups({"a", "a"}).list, {}), OverlapPolicy::kOff);
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, Groups({"a"}).list, {}), OverlapPolicy::kOff);
}

// What was measured counts; without that, ranks of one machine are taken to share its memory.
TEST(ResolveOverlap, Auto_OnOneMachine) {
  const Groups beside({"a", "b"}, "machine");
  const HostLink network{"b", "a", {30, 1e9}, false};
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, beside.list, {}), OverlapPolicy::kOff);
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kAuto, beside.list, {network}), OverlapPolicy::kOn);
}

TEST(ResolveOverlap, WhatIsAskedForCounts) {
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kOff, Groups({"a", "b"}).list, {}), OverlapPolicy::kOff);
  EXPECT_EQ(ResolveOverlap(OverlapPolicy::kOn, Groups({"a", "a"}).list, {}), OverlapPolicy::kOn);
}

TEST(InHalves, LargeEvenStepsOfASplit) {
  PlanOptions options;
  options.overlap = OverlapPolicy::kOn;
  HeldSlices held;
  held.split = true;
  EXPECT_TRUE(InHalves(options, held, 512));
  EXPECT_TRUE(InHalves(options, held, 64));
  EXPECT_FALSE(InHalves(options, held, 65));
  EXPECT_FALSE(InHalves(options, held, 32));
  options.overlap = OverlapPolicy::kOff;
  EXPECT_FALSE(InHalves(options, held, 512));
  options.overlap = OverlapPolicy::kOn;
  held.split = false;
  EXPECT_FALSE(InHalves(options, held, 512));
}

}  // namespace
}  // namespace weft
