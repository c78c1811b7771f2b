// A command stream of the BLAS device. Every call is complete when it returns.
#pragma once

#include <cstdint>
#include <memory>

#include "common/blas/blas_device.h"
#include "common/device/device.h"

namespace weft {

class BlasBackend final : public Backend {
 public:
  BlasBackend(BlasDevice& device, BackendOptions options)
      : device_(device), options_(std::move(options)) {}

  Device& device() override { return device_; }
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override;
  absl::Status Launch(Executable& executable) override;

  absl::Status Upload(const void* data, Buffer& destination, int64_t offset,
                      int64_t bytes) override;
  absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) override;
  absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                    int64_t destination_offset, int64_t bytes) override;

  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status Record(Event&) override { return absl::OkStatus(); }
  absl::Status Wait(Event& event) override { return event.Synchronize(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  absl::Status GrowWorkspace(int64_t bytes);

  BlasDevice& device_;
  const BackendOptions options_;
  std::unique_ptr<Buffer> workspace_;  // shared by the executables of this backend
};

}  // namespace weft
