#include "tests/support/fake_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fake_memory.h"

namespace weft {

class FakeDevice::FakeBufferType final : public BufferType {
 public:
  explicit FakeBufferType(FakeDevice& device)
      : device_(device), name_(absl::StrCat(device.name(), " memory")) {}

  const std::string& name() const override { return name_; }
  Device& device() const override { return device_; }
  int64_t alignment() const override { return device_.options_.alignment; }
  int64_t max_bytes() const override { return device_.options_.max_buffer_bytes; }
  int64_t TensorBytes(const TensorLayout& layout) const override {
    return ByteExtent(layout).value_or(0) + device_.options_.padding_bytes;
  }
  bool is_host() const override { return device_.options_.says_host; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) override {
    return device_.Allocate(bytes, usage);
  }

 private:
  FakeDevice& device_;
  std::string name_;
};

FakeDevice::FakeDevice(FakeDeviceOptions options)
    : options_(std::move(options)), buffer_type_(std::make_unique<FakeBufferType>(*this)) {}
FakeDevice::~FakeDevice() = default;

DeviceMemory FakeDevice::memory() const {
  if (options_.shares_memory_of != nullptr) return options_.shares_memory_of->memory();
  return {options_.memory_bytes - used_bytes(), options_.memory_bytes};
}

int64_t FakeDevice::used_bytes() const {
  MutexLock lock(mutex_);
  return used_bytes_;
}

FakeTraffic FakeDevice::traffic() const {
  MutexLock lock(mutex_);
  return traffic_;
}

DeviceCapabilities FakeDevice::capabilities() const {
  DeviceCapabilities capabilities;
  capabilities.async = true;
  capabilities.events = true;
  capabilities.host_memory = options_.says_host;
  if (Device* owner = options_.shares_memory_of; owner != nullptr) {
    capabilities.host_memory = owner->buffer_type().is_host();
    capabilities.wraps_host_memory = owner->capabilities().wraps_host_memory;
  }
  return capabilities;
}

BufferType& FakeDevice::buffer_type() {
  Device* owner = options_.shares_memory_of;
  return owner != nullptr ? owner->buffer_type() : *buffer_type_;
}

Support FakeDevice::Supports(const Graph& graph, NodeId id) const {
  RETURN_IF_ERROR(CheckRunsOnDevice(graph, id));
  const Node& node = graph.node(id);
  const auto contains = [](const auto& list, auto value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  if (contains(options_.refused_ops, node.op)) {
    return absl::UnimplementedError(absl::StrCat("no ", AbslView(OpName(node.op))));
  }
  auto layouts = graph.SourceLayouts(id);
  layouts.push_back(node.layout);
  for (const TensorLayout& layout : layouts) {
    if (contains(options_.refused_dtypes, layout.dtype)) {
      return absl::UnimplementedError(
          absl::StrCat("no tensors of ", AbslView(DTypeName(layout.dtype))));
    }
  }
  if (options_.refuses && options_.refuses(graph, id)) {
    return absl::UnimplementedError("told to refuse it");
  }
  return absl::OkStatus();
}

Support FakeDevice::Supports(const BufferType& type) const {
  Device* owner = options_.shares_memory_of;
  const BufferType& own = owner != nullptr ? owner->buffer_type() : *buffer_type_;
  if (&type == &own) return absl::OkStatus();
  const std::vector<std::string>& names = options_.accepted_buffer_types;
  if (std::find(names.begin(), names.end(), type.name()) != names.end()) return absl::OkStatus();
  return CannotRead(*this, type);
}

bool FakeDevice::Corrupts(const Graph& graph, NodeId id) const {
  const std::vector<Op>& ops = options_.corrupt_ops;
  if (std::find(ops.begin(), ops.end(), graph.node(id).op) != ops.end()) return true;
  return options_.corrupts && options_.corrupts(graph, id);
}

bool FakeDevice::Wants(const Graph& graph, NodeId id) const {
  return options_.offload_batch > 0 && OffloadBatch(graph, id) >= options_.offload_batch;
}

absl::StatusOr<std::unique_ptr<Buffer>> FakeDevice::Allocate(int64_t bytes, BufferUsage usage) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(options_.name, ": ", bytes, " bytes"));
  }
  {
    MutexLock lock(mutex_);
    if (bytes > options_.max_buffer_bytes || bytes > options_.memory_bytes - used_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(options_.name, ": cannot allocate ", bytes, " bytes"));
    }
    used_bytes_ += bytes;
  }
  return std::make_unique<FakeBuffer>(*buffer_type_, usage, bytes, [this](int64_t freed) {
    MutexLock lock(mutex_);
    used_bytes_ -= freed;
  });
}

absl::StatusOr<std::unique_ptr<Buffer>> FakeDevice::WrapHostMemory(void* data, int64_t bytes,
                                                                   BufferUsage usage) {
  if (Device* owner = options_.shares_memory_of; owner != nullptr) {
    return owner->WrapHostMemory(data, bytes, usage);
  }
  return absl::UnimplementedError(absl::StrCat(options_.name, " does not use host memory"));
}

absl::StatusOr<std::unique_ptr<Backend>> FakeDevice::OpenBackend(BackendOptions) {
  MutexLock lock(mutex_);
  return std::make_unique<FakeBackend>(*this, options_.seed * 1000 + backends_opened_++);
}

}  // namespace weft
