#include "worker/device_discovery.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A device that notes its name when it is destroyed.
std::unique_ptr<Device> Noted(const std::string& name, DeviceKind kind,
                              std::vector<std::string>& destroyed) {
  FakeDeviceOptions options;
  options.name = name;
  options.kind = kind;
  const std::shared_ptr<void> note(nullptr,
                                   [name, &destroyed](void*) { destroyed.push_back(name); });
  options.refuses = [note](const Graph&, NodeId) { return false; };
  return std::make_unique<FakeDevice>(std::move(options));
}

class WorkerDevicesTest : public testing::Test {
 protected:
  absl::StatusOr<WorkerDevices> Discover() {
    DeviceOptions options;
    options.kinds = {"test"};
    return DiscoverDevices(options, [this](const std::string&, const DeviceOptions&) {
      std::vector<std::unique_ptr<Device>> made;
      made.push_back(Noted("cpu", DeviceKind::kCpu, destroyed_));
      made.push_back(Noted("accel", DeviceKind::kAccelerator, destroyed_));
      made.push_back(Noted("gpu", DeviceKind::kGpu, destroyed_));
      return made;
    });
  }
  static std::vector<std::string> Names(const WorkerDevices& devices) {
    std::vector<std::string> names;
    for (const Device* device : devices.devices) names.push_back(device->name());
    return names;
  }

  std::vector<std::string> destroyed_;
};

TEST_F(WorkerDevicesTest, Discover_ListsGpusFirst_AndDestroysInReverse) {
  {
    ASSERT_OK_AND_ASSIGN(const WorkerDevices devices, Discover());
    EXPECT_THAT(Names(devices), ElementsAre("gpu", "accel", "cpu"));
    EXPECT_THAT(destroyed_, IsEmpty());
  }
  EXPECT_THAT(destroyed_, ElementsAre("gpu", "accel", "cpu"));
}

TEST_F(WorkerDevicesTest, Abandon_TakesItOutOfTheListAndNeverDestroysIt) {
  std::unique_ptr<Device> abandoned;
  {
    ASSERT_OK_AND_ASSIGN(WorkerDevices devices, Discover());
    Device* const accel = devices.devices[1];
    devices.Abandon(accel);
    EXPECT_THAT(Names(devices), ElementsAre("gpu", "cpu"));
    abandoned.reset(accel);  // nobody else has it any more
  }
  EXPECT_THAT(destroyed_, ElementsAre("gpu", "cpu"));
}

}  // namespace
}  // namespace weft
