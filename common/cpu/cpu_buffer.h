// The memory of a CPU device: host memory in the standard layout, counted against a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/device/buffer.h"

namespace weft {

// Thread-safe. Outlives its buffers.
class CpuBufferType final : public BufferType {
 public:
  // A cache line, so that no line spans two tensors (spec A.9).
  static constexpr int64_t kAlignment = 64;

  // At most `limit_bytes` are allocated at a time.
  CpuBufferType(std::string name, Device& device, int64_t limit_bytes)
      : name_(std::move(name)), device_(device), limit_bytes_(limit_bytes) {}

  const std::string& name() const override { return name_; }
  Device& device() const override { return device_; }
  int64_t alignment() const override { return kAlignment; }
  int64_t max_bytes() const override { return limit_bytes_; }
  int64_t TensorBytes(const TensorLayout& layout) const override;
  bool is_host() const override { return true; }
  // The content is unspecified. Large buffers ask for huge pages. Errors: INVALID_ARGUMENT for a
  // negative size; RESOURCE_EXHAUSTED beyond the limit or where the system has no memory.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) override;
  // A buffer over memory of the caller, who keeps it valid; not counted. Read-only memory (a mapped
  // file) is fine as long as nothing is written to it. Errors: INVALID_ARGUMENT.
  absl::StatusOr<std::unique_ptr<Buffer>> Wrap(void* data, int64_t bytes, BufferUsage usage);

  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  class AllocatedBuffer;
  // False if that would pass the limit.
  bool Take(int64_t bytes);

  std::string name_;
  Device& device_;
  int64_t limit_bytes_;
  std::atomic<int64_t> used_bytes_{0};
};

}  // namespace weft
