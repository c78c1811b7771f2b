// A command stream of the BLAS device. Every call is complete when it returns.
#pragma once

#include <memory>
#include <utility>

#include "common/blas/blas_device.h"
#include "common/device/host_backend.h"

namespace weft {

class BlasBackend final : public HostBackend {
 public:
  BlasBackend(BlasDevice& device, BackendOptions options)
      : HostBackend(std::move(options)), device_(device) {}

  Device& device() override { return device_; }
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override;
  absl::Status Launch(Executable& executable) override;

 private:
  BlasDevice& device_;
};

}  // namespace weft
