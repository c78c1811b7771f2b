#include "common/device/host_backend.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

class DoneEvent final : public Event {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

}  // namespace

absl::Status HostBackend::Upload(const void* data, Buffer& destination, int64_t offset,
                                 int64_t bytes) {
  return destination.Set(offset, data, bytes);
}

absl::Status HostBackend::Download(Buffer& source, int64_t offset, void* data, int64_t bytes) {
  return source.Get(offset, data, bytes);
}

absl::Status HostBackend::Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                               int64_t destination_offset, int64_t bytes) {
  return CopyBuffer(source, source_offset, destination, destination_offset, bytes);
}

absl::StatusOr<std::unique_ptr<Event>> HostBackend::NewEvent() {
  return std::make_unique<DoneEvent>();
}

absl::Status HostBackend::GrowWorkspace(int64_t bytes) {
  if (workspace_ != nullptr && bytes <= workspace_->size()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Buffer>> grown =
      device().buffer_type().Allocate(bytes, BufferUsage::kCompute);
  if (!grown.ok()) {
    return absl::Status(grown.status().code(),
                        absl::StrCat("workspace: ", grown.status().message()));
  }
  workspace_ = *std::move(grown);
  return absl::OkStatus();
}

uint8_t* HostBackend::workspace() const {
  return workspace_ == nullptr ? nullptr : static_cast<uint8_t*>(workspace_->host_data());
}

}  // namespace weft
