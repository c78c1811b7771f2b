// What of a machine decides how well weft runs on it, beside its devices: for `weft doctor`.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Of the machine as this process sees it. -1, or an empty text: the system does not tell.
struct HostFacts {
  int64_t unix_microseconds = -1;  // the time of day when this was read
  // The kernel's word: a time service holds the clock.
  bool clock_held = false;
  std::string kernel;  // its release
  int32_t processors = -1;
  double processor_limit = 0;  // of the control group, in processors; 0: none
  int64_t memory_bytes = -1;   // of the machine
  int64_t memory_available = -1;
  int64_t memory_limit = -1;  // of the control group; -1: none
  int64_t shared_bytes = -1;  // of /dev/shm
  int64_t shared_free = -1;
  std::string huge_pages;         // transparent ones: "always", "madvise", "never"
  int64_t locked_limit = -1;      // bytes a process may lock; -1: no limit
  int64_t open_files_limit = -1;  // -1: no limit
  bool has_rdma = false;          // a device of InfiniBand or RoCE

  friend bool operator==(const HostFacts&, const HostFacts&) = default;
};

// `root` stands in front of the files that are read.
HostFacts ReadHostFacts(const std::string& root = "");

}  // namespace weft
