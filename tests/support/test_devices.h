// The devices that only the tests' worker offers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device_discovery.h"

namespace weft {

// A DeviceFactory: "fake:2" makes GPUs fake0 and fake1, "wrong-rope:1" a GPU wrong-rope0 that
// computes rope wrong (FakeDevice). Errors: NOT_FOUND for other kinds; INVALID_ARGUMENT for a
// number that is not 1 to 16.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> MakeTestDevices(const std::string& kind,
                                                                     const DeviceOptions& options);

}  // namespace weft
