// A command stream of the CPU device. Every call is complete when it returns.
#pragma once

#include <cstdint>
#include <memory>

#include "common/cpu/cpu_device.h"
#include "common/device/device.h"

namespace weft {

class CpuBackend final : public Backend {
 public:
  CpuBackend(CpuDevice& device, BackendOptions options)
      : device_(device), options_(std::move(options)) {}

  Device& device() override { return device_; }
  // Resolves all addresses and grows the scratch memory, so that Launch allocates nothing (but for
  // ops that the oracle computes, op_dispatch.cc).
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override;
  // Stops at the first op that fails; the error names its node.
  absl::Status Launch(Executable& executable) override;

  absl::Status Upload(const void* data, Buffer& destination, int64_t offset,
                      int64_t bytes) override;
  absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) override;
  absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                    int64_t destination_offset, int64_t bytes) override;

  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status Record(Event& event) override;
  absl::Status Wait(Event& event) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  absl::Status GrowWorkspace(int64_t bytes);

  CpuDevice& device_;
  const BackendOptions options_;
  std::unique_ptr<Buffer> workspace_;  // shared by the executables of this backend
};

}  // namespace weft
