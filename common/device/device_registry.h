// The devices of this process, in the order that main() listed them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"

namespace weft {

class DeviceRegistry {
 public:
  // Errors: ALREADY_EXISTS if a device of that name is here; INVALID_ARGUMENT for an empty name.
  absl::Status Add(std::unique_ptr<Device> device);

  // In the order of Add; valid as long as the registry.
  absl::Span<Device* const> devices() const { return borrowed_; }
  // Errors: NOT_FOUND listing the names there are.
  absl::StatusOr<Device*> Find(std::string_view name) const;

 private:
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> borrowed_;
};

}  // namespace weft
