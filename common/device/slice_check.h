// What every backend checks before it prepares a slice.
#pragma once

#include "absl/status/status.h"
#include "common/device/device.h"

namespace weft {

// Every executed node of the slice is supported by `device`, and it and its sources lie aligned and
// whole in buffers of types that the device can use. Errors: as Backend::Prepare, naming the node.
absl::Status CheckSlice(const Device& device, const GraphSlice& slice);

}  // namespace weft
