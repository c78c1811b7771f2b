// The devices of this machine, as the flags of a command want them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"

namespace weft {

struct LocalDeviceOptions {
  int32_t threads = 0;          // 0: DefaultThreads
  std::string instruction_set;  // empty: the best
  bool blas = false;            // an accelerator for large products beside the CPU
};

struct LocalDevices {
  std::unique_ptr<Device> cpu;          // local.cpu0
  std::unique_ptr<Device> accelerator;  // in the CPU's memory; may be null
  std::vector<Device*> devices;         // in the scheduler's order: the CPU last
  int32_t threads = 1;
};

// Errors: INVALID_ARGUMENT naming the flag; FAILED_PRECONDITION for what is not there.
absl::StatusOr<LocalDevices> OpenLocalDevices(const LocalDeviceOptions& options);

}  // namespace weft
