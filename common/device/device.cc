#include "common/device/device.h"

namespace weft {

std::string_view DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kGpu:
      return "gpu";
    case DeviceKind::kAccelerator:
      return "accel";
    case DeviceKind::kMeta:
      return "meta";
  }
  return "unknown";
}

}  // namespace weft
