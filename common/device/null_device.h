// A device that computes nothing and holds no bytes: it hands out addresses. Plans are made,
// verified and costed on it for machines that are not there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/device/device.h"

namespace weft {

struct NullDeviceOptions {
  std::string name = "null";
  std::string host = "local";
  std::string machine = {};     // empty: the host
  std::string arithmetic = {};  // empty: the description
  DeviceKind kind = DeviceKind::kGpu;
  DeviceCapabilities capabilities;
  BatchRange preferred_batch;
  int64_t memory_bytes = int64_t{1} << 40;
  int64_t max_buffer_bytes = int64_t{1} << 40;
  int64_t alignment = 64;  // power of two, >= 64
  // Whose memory it computes in: another NullDevice on the same machine, which outlives it. Null:
  // its own.
  Device* shares_memory_of = nullptr;
  // Packing of its memory (BufferType::layout), and whether host memory of its machine is readable.
  std::string layout = "standard";
  bool reads_host_memory = false;
  // Which nodes it says it can run. Empty: all.
  std::function<Support(const Graph&, NodeId)> supports;
  // Wants nodes of at least this batch although a weight lies in host memory; 0: never.
  int64_t offload_batch = 0;
};

// The memory of a NullDevice: a range of addresses. Set, Fill and copies check their ranges and do
// nothing; Get is UNIMPLEMENTED.
class NullBuffer final : public Buffer {
 public:
  NullBuffer(BufferType& type, BufferUsage usage, uint64_t address, int64_t bytes,
             std::function<void(int64_t)> freed)
      : type_(type), usage_(usage), address_(address), bytes_(bytes), freed_(std::move(freed)) {}
  ~NullBuffer() override { freed_(bytes_); }

  // Where it would lie; ranges of live and freed buffers of one device never overlap.
  uint64_t address() const { return address_; }

  BufferType& type() const override { return type_; }
  int64_t size() const override { return bytes_; }
  BufferUsage usage() const override { return usage_; }
  void* host_data() override { return nullptr; }
  absl::Status Set(int64_t offset, const void* data, int64_t bytes) override;
  absl::Status Get(int64_t offset, void* data, int64_t bytes) override;
  absl::Status Fill(int64_t offset, uint8_t value, int64_t bytes) override;

 private:
  BufferType& type_;
  BufferUsage usage_;
  uint64_t address_;
  int64_t bytes_;
  std::function<void(int64_t)> freed_;
};

// Thread-safe. Outlives its buffers and backends.
class NullDevice final : public Device {
 public:
  explicit NullDevice(NullDeviceOptions options);
  ~NullDevice() override;

  const std::string& name() const override { return options_.name; }
  const std::string& description() const override { return description_; }
  DeviceKind kind() const override { return options_.kind; }
  const std::string& host() const override { return options_.host; }
  const std::string& machine() const override {
    return options_.machine.empty() ? options_.host : options_.machine;
  }
  const std::string& arithmetic() const override {
    return options_.arithmetic.empty() ? description_ : options_.arithmetic;
  }
  DeviceMemory memory() const override;
  DeviceCapabilities capabilities() const override { return options_.capabilities; }
  BatchRange preferred_batch() const override { return options_.preferred_batch; }
  BufferType& buffer_type() override;
  Support Supports(const Graph& graph, NodeId id) const override;
  Support Supports(const BufferType& type) const override;
  bool Wants(const Graph& graph, NodeId id) const override;
  int64_t WorkspaceBytes(const Graph&, NodeId) const override { return 0; }
  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                         BufferUsage usage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) override;

 private:
  class NullBufferType;
  // Errors: INVALID_ARGUMENT for a negative size; RESOURCE_EXHAUSTED.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage);

  const NullDeviceOptions options_;
  const std::string description_ = "computes nothing";
  std::unique_ptr<NullBufferType> buffer_type_;
  mutable Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_address_ ABSL_GUARDED_BY(mutex_) = uint64_t{1} << 32;
};

}  // namespace weft
