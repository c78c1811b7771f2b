// The devices of this machine that a worker offers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"

namespace weft {

struct DeviceOptions {
  std::string host;                // the worker's name
  std::vector<std::string> kinds;  // "cpu", "blas", and what a DeviceFactory knows
  int32_t threads = 1;
  int64_t memory_bytes = 0;     // most that the CPU device gives out; 0: what the machine has
  std::string instruction_set;  // empty: the best
};

// `devices` is in the scheduler's order: GPUs, accelerators, CPUs.
struct WorkerDevices {
  WorkerDevices() = default;
  WorkerDevices(WorkerDevices&&) = default;
  WorkerDevices& operator=(WorkerDevices&&) = default;
  // In reverse, so that what computes in another's memory goes first.
  ~WorkerDevices();

  // For a device in which a thread hangs: it is out of the list and never destroyed.
  void Abandon(Device* device);

  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
};

// Makes devices of a kind that this file does not know, for tests: "fake:2". NOT_FOUND: unknown.
using DeviceFactory = std::function<absl::StatusOr<std::vector<std::unique_ptr<Device>>>(
    const std::string& kind, const DeviceOptions& options)>;

// Errors: INVALID_ARGUMENT naming the flag; FAILED_PRECONDITION for what is not there.
absl::StatusOr<WorkerDevices> DiscoverDevices(const DeviceOptions& options,
                                              const DeviceFactory& factory);

}  // namespace weft
