// What the backends of devices in plain host memory share: every call is complete when it returns,
// so copies are memory copies and there is nothing to wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/device/device.h"

namespace weft {

class HostBackend : public Backend {
 public:
  absl::Status Upload(const void* data, Buffer& destination, int64_t offset, int64_t bytes) final;
  absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) final;
  absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                    int64_t destination_offset, int64_t bytes) final;

  absl::StatusOr<std::unique_ptr<Event>> NewEvent() final;
  absl::Status Record(Event&) final { return absl::OkStatus(); }
  absl::Status Wait(Event& event) final { return event.Synchronize(); }
  absl::Status Synchronize() final { return absl::OkStatus(); }

 protected:
  explicit HostBackend(BackendOptions options) : options_(std::move(options)) {}

  const BackendOptions& options() const { return options_; }
  // Scratch memory that the executables of this backend share; it only grows. Where that fails the
  // old one stays, and executables that were prepared before are valid. Errors: RESOURCE_EXHAUSTED.
  absl::Status GrowWorkspace(int64_t bytes);
  // Null before it first grew.
  uint8_t* workspace() const;

 private:
  const BackendOptions options_;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace weft
