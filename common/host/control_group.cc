#include "common/host/control_group.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/absl_view.h"
#include "common/base/machine_memory.h"
#include "common/base/processors.h"
#include "common/host/system_file.h"

namespace weft {
namespace {

// Groups lie in each other; a path with more parts is none.
constexpr size_t kMostDepth = 64;
// Of a limit, for everything but the device: code, messages on their way, other buffers.
constexpr int64_t kLeastReserve = int64_t{256} << 20;
constexpr int64_t kReserveShare = 16;

void Lower(double processors, ControlGroupLimits& limits) {
  if (processors <= 0) return;
  limits.processors = limits.processors <= 0 ? processors : std::min(limits.processors, processors);
}

void Lower(int64_t bytes, ControlGroupLimits& limits) {
  if (bytes < 0) return;
  limits.memory_bytes = limits.memory_bytes < 0 ? bytes : std::min(limits.memory_bytes, bytes);
}

void LowerByQuota(int64_t time, int64_t period, ControlGroupLimits& limits) {
  if (time > 0 && period > 0) {
    Lower(static_cast<double>(time) / static_cast<double>(period), limits);
  }
}

// Folders of a group and of those that it lies in, the outermost first: "/a/b" is "", "/a", "/a/b".
// In a container the path may be that of the machine, and only the first be there.
std::vector<std::string> Folders(absl::string_view path) {
  std::vector<std::string> folders = {""};
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part == ".." || folders.size() >= kMostDepth) break;
    folders.push_back(absl::StrCat(folders.back(), "/", part));
  }
  return folders;
}

void ReadVersion2(const std::string& mount, absl::string_view path, ControlGroupLimits& limits) {
  for (const std::string& folder : Folders(path)) {
    const std::vector<std::string> quota =
        absl::StrSplit(ReadSystemFile(absl::StrCat(mount, folder, "/cpu.max")),
                       absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (quota.size() == 2) LowerByQuota(NumberIn(quota[0]), NumberIn(quota[1]), limits);
    Lower(NumberIn(ReadSystemFile(absl::StrCat(mount, folder, "/memory.max"))), limits);
  }
}

void ReadVersion1(const std::string& mount, const std::vector<absl::string_view>& controllers,
                  absl::string_view path, ControlGroupLimits& limits) {
  const auto number = [&](const std::string& folder, const char* file) {
    return NumberIn(ReadSystemFile(absl::StrCat(mount, folder, "/", file)));
  };
  for (const absl::string_view controller : controllers) {
    for (const std::string& folder : Folders(path)) {
      const std::string at = absl::StrCat("/", controller, folder);
      if (controller == "cpu") {
        LowerByQuota(number(at, "cpu.cfs_quota_us"), number(at, "cpu.cfs_period_us"), limits);
      } else if (controller == "memory") {
        // Without a limit it is a number beyond all machines.
        Lower(number(at, "memory.limit_in_bytes"), limits);
      }
    }
  }
}

}  // namespace

ControlGroupLimits ReadControlGroupLimits(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  ControlGroupLimits limits;
  ReadVersion2(mount, "", limits);
  const std::string groups = ReadSystemFile(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    // HIERARCHY:CONTROLLERS:PATH; version 2 has none of the first two.
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      ReadVersion2(mount, fields[2], limits);
    } else {
      ReadVersion1(mount, absl::StrSplit(fields[1], ','), fields[2], limits);
    }
  }
  return limits;
}

int32_t DefaultThreads(int32_t available, const ControlGroupLimits& limits) {
  if (limits.processors <= 0 || limits.processors >= available) return available;
  return std::max(1, static_cast<int32_t>(limits.processors));
}

int32_t DefaultThreads() { return DefaultThreads(AvailableProcessors(), ReadControlGroupLimits()); }

int64_t DefaultMemoryBytes(int64_t machine_bytes, const ControlGroupLimits& limits) {
  const int64_t limit = limits.memory_bytes;
  if (limit < 0 || (machine_bytes > 0 && limit >= machine_bytes)) return 0;
  const int64_t reserve = std::max(kLeastReserve, limit / kReserveShare);
  return std::max<int64_t>(limit - std::min(reserve, limit / 2), 1);
}

int64_t DefaultMemoryBytes() {
  return DefaultMemoryBytes(MachineMemoryBytes(), ReadControlGroupLimits());
}

int64_t OfferedMemoryBytes(int64_t asked, int64_t machine_bytes) {
  if (asked <= 0) return DefaultMemoryBytes();
  return machine_bytes > 0 ? std::min(asked, machine_bytes) : asked;
}

}  // namespace weft
