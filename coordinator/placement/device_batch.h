// Which batch sizes the user wants on which device: "w0.gpu0:32-,cpu:-31" (spec B.14a).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"

namespace weft {

struct DeviceBatchRule {
  std::string device;  // a device's name, or "cpu": every CPU
  BatchRange range;    // in tokens of a step
  friend bool operator==(const DeviceBatchRule&, const DeviceBatchRule&) = default;
};

// Parses a comma list of DEVICE:RANGE, where a range is "8-64", "8-" (8 and more), "-64" (up to 64)
// or "8". Empty text has no rules. Errors: INVALID_ARGUMENT naming the item.
absl::StatusOr<std::vector<DeviceBatchRule>> ParseDeviceBatches(std::string_view text);

// The batches of each device of the list: those of its rules, else what it prefers. Several rules
// of a device are one range if they adjoin. Errors: INVALID_ARGUMENT for a device that is not there
// (listing those that are) and for rules of one device that overlap or leave a gap.
absl::StatusOr<std::vector<BatchRange>> ResolveDeviceBatches(
    absl::Span<const DeviceBatchRule> rules, absl::Span<Device* const> devices);

}  // namespace weft
