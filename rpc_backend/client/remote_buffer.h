// Memory of a worker, known by a handle of the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/device/buffer.h"

namespace weft {

class RemoteDevice;
class WorkerConnection;

// Thread-safe. Belongs to its device.
class RemoteBufferType final : public BufferType {
 public:
  RemoteBufferType(std::shared_ptr<WorkerConnection> connection, RemoteDevice& device);

  const std::string& name() const override { return name_; }
  Device& device() const override;
  int64_t alignment() const override;
  int64_t max_bytes() const override;
  // Asked of the worker where the device pads, and remembered. A worker that cannot be asked gives
  // the extent; it refuses what is too small later.
  int64_t TensorBytes(const TensorLayout& layout) const override;
  bool is_host() const override;
  std::string_view layout() const override;
  // Sees the memory of all buffers that were freed before.
  // Errors: INVALID_ARGUMENT for a negative size; RESOURCE_EXHAUSTED; that of a lost worker.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) override;

 private:
  const std::shared_ptr<WorkerConnection> connection_;
  RemoteDevice& device_;
  const std::string name_;
  mutable Mutex mutex_;
  // Bytes by the encoded layout.
  mutable absl::flat_hash_map<std::string, int64_t> tensor_bytes_ ABSL_GUARDED_BY(mutex_);
};

// Set, Get and Fill move data in pieces, each a call with a deadline. Any thread may call.
class RemoteBuffer final : public Buffer {
 public:
  RemoteBuffer(std::shared_ptr<WorkerConnection> connection, RemoteDevice& device, int64_t handle,
               int64_t bytes, BufferUsage usage);
  // Has the worker free it, without waiting; nothing if the worker is lost.
  ~RemoteBuffer() override;

  BufferType& type() const override;
  int64_t size() const override { return bytes_; }
  BufferUsage usage() const override { return usage_; }
  void* host_data() override { return nullptr; }
  absl::Status Set(int64_t offset, const void* data, int64_t bytes) override;
  absl::Status Get(int64_t offset, void* data, int64_t bytes) override;
  absl::Status Fill(int64_t offset, uint8_t value, int64_t bytes) override;

  int64_t handle() const { return handle_; }
  bool BelongsTo(const WorkerConnection& connection) const {
    return connection_.get() == &connection;
  }

 private:
  const std::shared_ptr<WorkerConnection> connection_;
  RemoteDevice& device_;
  const int64_t handle_;
  const int64_t bytes_;
  const BufferUsage usage_;
};

}  // namespace weft
