#include "tests/support/test_devices.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/fake_device.h"

namespace weft {
namespace {

constexpr int kMaxDevices = 16;

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Device>>> MakeTestDevices(const std::string& kind,
                                                                     const DeviceOptions& options) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(kind, absl::MaxSplits(':', 1));
  const auto& [name, number] = parts;
  const bool wrong_rope = name == "wrong-rope";
  if (name != "fake" && !wrong_rope) return absl::NotFoundError(kind);
  int count = 0;
  if (!absl::SimpleAtoi(number, &count) || count < 1 || count > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices ", kind, ": want ", name, ":1 to ", name, ":", kMaxDevices));
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    FakeDeviceOptions fake;
    fake.name = absl::StrCat(name, i);
    fake.host = options.host;
    fake.seed = static_cast<uint64_t>(i) + 1;
    if (options.memory_bytes > 0) {
      fake.memory_bytes = options.memory_bytes;
      fake.max_buffer_bytes = options.memory_bytes;
    }
    if (wrong_rope) fake.corrupt_ops = {Op::kRope};
    devices.push_back(std::make_unique<FakeDevice>(fake));
  }
  return devices;
}

}  // namespace weft
