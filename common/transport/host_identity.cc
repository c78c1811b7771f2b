#include "common/transport/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace weft {
namespace {

// Device and inode of what a path names, which tells namespaces and mounts apart.
std::string FileIdentity(const char* path) {
  struct stat about = {};
  if (stat(path, &about) != 0) return "";
  return absl::StrCat(absl::Hex(about.st_dev), "-", absl::Hex(about.st_ino));
}

}  // namespace

std::string HostIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const std::string network = FileIdentity("/proc/self/ns/net");
  const std::string processes = FileIdentity("/proc/self/ns/pid");
  const std::string memory = FileIdentity("/dev/shm");
  if (boot.empty() || network.empty() || processes.empty() || memory.empty()) {
    const SystemClock clock;
    return absl::StrCat("process-", getpid(), "-", clock.Now().time_since_epoch().count());
  }
  return absl::StrCat(boot, ":", network, ":", processes, ":", memory, ":", getuid());
}

}  // namespace weft
