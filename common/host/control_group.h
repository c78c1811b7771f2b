// What the control groups of this process allow it, where that is less than its machine has: the
// limits of a container, a pod, a service.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

struct ControlGroupLimits {
  double processors = 0;      // that may run at the same time, on average; 0: no limit
  int64_t memory_bytes = -1;  // -1: no limit
  friend bool operator==(const ControlGroupLimits&, const ControlGroupLimits&) = default;
};

// The least of the group of this process and of those that it lies in, as far as it sees them, of
// version 2 and of version 1. `root` stands in front of the files that are read.
ControlGroupLimits ReadControlGroupLimits(const std::string& root = "");

// How many threads shall compute unless people say: one for each of `available` processors, but no
// more than the limit lets run without a stop; at least 1.
int32_t DefaultThreads(int32_t available, const ControlGroupLimits& limits);
// The same of this process, now.
int32_t DefaultThreads();

// How much memory a device shall give out unless people say, where a limit is below what the
// machine has: the rest of the limit is for everything else in the process. 0: there is no such
// limit.
int64_t DefaultMemoryBytes(int64_t machine_bytes, const ControlGroupLimits& limits);
int64_t DefaultMemoryBytes();
// What a device gives out where people asked for so much of a machine that has so much: at most
// that; what DefaultMemoryBytes says where they asked for nothing. 0: unknown.
int64_t OfferedMemoryBytes(int64_t asked, int64_t machine_bytes);

}  // namespace weft
