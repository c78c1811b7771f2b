#include "common/device/device_registry.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"

namespace weft {

absl::Status DeviceRegistry::Add(std::unique_ptr<Device> device) {
  if (device->name().empty()) return absl::InvalidArgumentError("a device has no name");
  for (const Device* other : borrowed_) {
    if (other->name() == device->name()) {
      return absl::AlreadyExistsError(absl::StrCat("two devices are called ", device->name()));
    }
  }
  borrowed_.push_back(device.get());
  owned_.push_back(std::move(device));
  return absl::OkStatus();
}

absl::StatusOr<Device*> DeviceRegistry::Find(std::string_view name) const {
  for (Device* device : borrowed_) {
    if (device->name() == name) return device;
  }
  const auto append_name = [](std::string* text, const Device* device) {
    text->append(device->name());
  };
  return absl::NotFoundError(absl::StrCat(
      "no device ", AbslView(name), "; there are: ", absl::StrJoin(borrowed_, ", ", append_name)));
}

}  // namespace weft
