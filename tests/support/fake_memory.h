// The memory of FakeDevice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/device/buffer.h"

namespace weft {

// Bytes are stored masked. Buffers of weights keep a plain copy as well, made when a kernel first
// asks, because unmasking a whole weight for every node would make tests slow.
class FakeBuffer final : public Buffer {
 public:
  FakeBuffer(BufferType& type, BufferUsage usage, int64_t bytes,
             std::function<void(int64_t)> freed);
  ~FakeBuffer() override;

  BufferType& type() const override { return type_; }
  int64_t size() const override { return static_cast<int64_t>(masked_.size()); }
  BufferUsage usage() const override { return usage_; }
  void* host_data() override { return nullptr; }
  absl::Status Set(int64_t offset, const void* data, int64_t bytes) override;
  absl::Status Get(int64_t offset, void* data, int64_t bytes) override;
  absl::Status Fill(int64_t offset, uint8_t value, int64_t bytes) override;

  // For the device's own kernels: the plain bytes of a weight buffer, else null.
  uint8_t* PlainWeights() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BufferType& type_;
  BufferUsage usage_;
  std::vector<uint8_t> masked_;
  Mutex mutex_;  // two backends may ask for the plain copy at once
  std::vector<uint8_t> plain_ ABSL_GUARDED_BY(mutex_);  // empty, or all of it
  std::function<void(int64_t)> freed_;
};

}  // namespace weft
