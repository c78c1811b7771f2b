// A command stream of the CPU device. Every call is complete when it returns.
#pragma once

#include <memory>
#include <utility>

#include "common/cpu/cpu_device.h"
#include "common/device/host_backend.h"

namespace weft {

class CpuBackend final : public HostBackend {
 public:
  CpuBackend(CpuDevice& device, BackendOptions options)
      : HostBackend(std::move(options)), device_(device) {}

  Device& device() override { return device_; }
  // Resolves all addresses and grows the scratch memory, so that Launch allocates nothing (but for
  // ops that the oracle computes, op_dispatch.cc).
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override;
  // Stops at the first op that fails; the error names its node.
  absl::Status Launch(Executable& executable) override;

 private:
  CpuDevice& device_;
};

}  // namespace weft
