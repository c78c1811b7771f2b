#include "common/host/host_facts.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <limits>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/absl_view.h"
#include "common/base/processors.h"
#include "common/base/unix_time.h"
#include "common/host/control_group.h"
#include "common/host/system_file.h"

namespace weft {
namespace {

// "MemTotal:   16384 kB", in bytes.
int64_t MemoryLine(const std::string& meminfo, const char* name) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, name) || !absl::ConsumePrefix(&line, ":")) continue;
    absl::ConsumeSuffix(&line, "kB");
    const int64_t kib = NumberIn(StdView(line));
    return kib < 0 || kib > std::numeric_limits<int64_t>::max() / 1024 ? -1 : kib * 1024;
  }
  return -1;
}

void ReadSharedMemory(const std::string& root, HostFacts& facts) {
  struct statvfs shared {};
  if (statvfs((root + "/dev/shm").c_str(), &shared) != 0) return;
  const auto unit = static_cast<int64_t>(shared.f_frsize);
  facts.shared_bytes = static_cast<int64_t>(shared.f_blocks) * unit;
  facts.shared_free = static_cast<int64_t>(shared.f_bavail) * unit;
}

// The word in brackets of "always [madvise] never".
std::string HugePages(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return text.substr(open + 1, close - open - 1);
}

int64_t LimitOf(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return -1;
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_cur);
}

bool HasEntries(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return false;
  bool any = false;
  while (const dirent* entry = readdir(folder)) any = any || entry->d_name[0] != '.';
  closedir(folder);
  return any;
}

}  // namespace

HostFacts ReadHostFacts(const std::string& root) {
  HostFacts facts;
  facts.unix_microseconds = UnixMicroseconds();
  timex clock{};
  facts.clock_held = adjtimex(&clock) >= 0 && (clock.status & STA_UNSYNC) == 0;
  utsname system{};
  if (uname(&system) == 0) facts.kernel = system.release;
  facts.processors = AvailableProcessors();
  const std::string meminfo = ReadSystemFile(root + "/proc/meminfo");
  facts.memory_bytes = MemoryLine(meminfo, "MemTotal");
  facts.memory_available = MemoryLine(meminfo, "MemAvailable");
  const ControlGroupLimits limits = ReadControlGroupLimits(root);
  facts.processor_limit = limits.processors;
  facts.memory_limit = limits.memory_bytes;
  ReadSharedMemory(root, facts);
  facts.huge_pages =
      HugePages(ReadSystemFile(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.locked_limit = LimitOf(RLIMIT_MEMLOCK);
  facts.open_files_limit = LimitOf(RLIMIT_NOFILE);
  facts.has_rdma = HasEntries(root + "/sys/class/infiniband");
  return facts;
}

}  // namespace weft
