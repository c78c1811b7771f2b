#include "common/device/null_device.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/device/slice_check.h"

namespace weft {
namespace {

class NullEvent final : public Event {
 public:
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

class NullBackend final : public Backend {
 public:
  explicit NullBackend(Device& device) : device_(device) {}

  Device& device() override { return device_; }
  absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) override {
    RETURN_IF_ERROR(CheckSlice(device_, slice));
    return std::make_unique<Executable>();
  }
  absl::Status Launch(Executable&) override { return absl::OkStatus(); }
  absl::Status Upload(const void* data, Buffer& destination, int64_t offset,
                      int64_t bytes) override {
    return destination.Set(offset, data, bytes);
  }
  absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) override {
    return source.Get(offset, data, bytes);
  }
  absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                    int64_t destination_offset, int64_t bytes) override {
    RETURN_IF_ERROR(CheckRange(source, source_offset, bytes));
    return CheckRange(destination, destination_offset, bytes);
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<NullEvent>();
  }
  absl::Status Record(Event&) override { return absl::OkStatus(); }
  absl::Status Wait(Event&) override { return absl::OkStatus(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  Device& device_;
};

}  // namespace

class NullDevice::NullBufferType final : public BufferType {
 public:
  explicit NullBufferType(NullDevice& device)
      : device_(device), name_(absl::StrCat(device.name(), " memory")) {}

  const std::string& name() const override { return name_; }
  Device& device() const override { return device_; }
  int64_t alignment() const override { return device_.options_.alignment; }
  int64_t max_bytes() const override { return device_.options_.max_buffer_bytes; }
  int64_t TensorBytes(const TensorLayout& layout) const override {
    return ByteExtent(layout).value_or(0);
  }
  bool is_host() const override {
    return device_.options_.kind == DeviceKind::kCpu && device_.options_.layout == "standard";
  }
  std::string_view layout() const override { return device_.options_.layout; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) override {
    return device_.Allocate(bytes, usage);
  }

 private:
  NullDevice& device_;
  std::string name_;
};

absl::Status NullBuffer::Set(int64_t offset, const void*, int64_t bytes) {
  return CheckRange(*this, offset, bytes);
}
absl::Status NullBuffer::Get(int64_t offset, void*, int64_t bytes) {
  RETURN_IF_ERROR(CheckRange(*this, offset, bytes));
  return absl::UnimplementedError(absl::StrCat(type_.name(), " holds no bytes to read"));
}
absl::Status NullBuffer::Fill(int64_t offset, uint8_t, int64_t bytes) {
  return CheckRange(*this, offset, bytes);
}

NullDevice::NullDevice(NullDeviceOptions options)
    : options_(std::move(options)), buffer_type_(std::make_unique<NullBufferType>(*this)) {}
NullDevice::~NullDevice() = default;

DeviceMemory NullDevice::memory() const {
  MutexLock lock(mutex_);
  return {options_.memory_bytes - used_bytes_, options_.memory_bytes};
}

BufferType& NullDevice::buffer_type() {
  return options_.shares_memory_of != nullptr ? options_.shares_memory_of->buffer_type()
                                              : *buffer_type_;
}

Support NullDevice::Supports(const Graph& graph, NodeId id) const {
  RETURN_IF_ERROR(CheckRunsOnDevice(graph, id));
  return options_.supports ? options_.supports(graph, id) : absl::OkStatus();
}

Support NullDevice::Supports(const BufferType& type) const {
  if (&type == &const_cast<NullDevice*>(this)->buffer_type()) return absl::OkStatus();
  const bool near = type.device().host() == options_.host;
  if (near && type.is_host() && (options_.reads_host_memory || options_.kind == DeviceKind::kCpu)) {
    return absl::OkStatus();
  }
  return CannotRead(*this, type);
}

bool NullDevice::Wants(const Graph& graph, NodeId id) const {
  return options_.offload_batch > 0 && OffloadBatch(graph, id) >= options_.offload_batch;
}

absl::StatusOr<std::unique_ptr<Buffer>> NullDevice::Allocate(int64_t bytes, BufferUsage usage) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(options_.name, ": ", bytes, " bytes"));
  }
  MutexLock lock(mutex_);
  if (bytes > options_.max_buffer_bytes || bytes > options_.memory_bytes - used_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(options_.name, ": cannot allocate ", bytes, " bytes, ",
                     options_.memory_bytes - used_bytes_, " are free"));
  }
  used_bytes_ += bytes;
  const uint64_t address = next_address_;
  next_address_ += static_cast<uint64_t>(AlignUp(bytes + 1, options_.alignment));
  return std::make_unique<NullBuffer>(*buffer_type_, usage, address, bytes, [this](int64_t freed) {
    MutexLock free_lock(mutex_);
    used_bytes_ -= freed;
  });
}

absl::StatusOr<std::unique_ptr<Buffer>> NullDevice::WrapHostMemory(void*, int64_t, BufferUsage) {
  return absl::UnimplementedError(absl::StrCat(options_.name, " does not use host memory"));
}

absl::StatusOr<std::unique_ptr<Backend>> NullDevice::OpenBackend(BackendOptions) {
  return std::make_unique<NullBackend>(*this);
}

}  // namespace weft
