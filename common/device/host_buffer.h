// Plain host memory as a buffer type: for the CPU device, and for whatever else computes in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/device/buffer.h"

namespace weft {

// A buffer over host memory that outlives it. What owns its memory derives from this. Set and Get
// may overlap the buffer itself.
class HostBuffer : public Buffer {
 public:
  HostBuffer(BufferType& type, BufferUsage usage, uint8_t* data, int64_t bytes)
      : type_(type), usage_(usage), data_(data), bytes_(bytes) {}

  BufferType& type() const override { return type_; }
  int64_t size() const override { return bytes_; }
  BufferUsage usage() const override { return usage_; }
  void* host_data() override { return data_; }
  absl::Status Set(int64_t offset, const void* data, int64_t bytes) override;
  absl::Status Get(int64_t offset, void* data, int64_t bytes) override;
  absl::Status Fill(int64_t offset, uint8_t value, int64_t bytes) override;

 protected:
  uint8_t* data() const { return data_; }

 private:
  BufferType& type_;
  BufferUsage usage_;
  uint8_t* data_;
  int64_t bytes_;
};

// Tensors lie in it in their standard layout.
class HostBufferType final : public BufferType {
 public:
  // A cache line, so that no line spans two tensors (spec A.9).
  static constexpr int64_t kAlignment = 64;

  // `device` outlives this object. One allocation takes at most `max_bytes`.
  HostBufferType(std::string name, Device& device, int64_t max_bytes)
      : name_(std::move(name)), device_(device), max_bytes_(max_bytes) {}

  const std::string& name() const override { return name_; }
  Device& device() const override { return device_; }
  int64_t alignment() const override { return kAlignment; }
  int64_t max_bytes() const override { return max_bytes_; }
  int64_t TensorBytes(const TensorLayout& layout) const override;
  bool is_host() const override { return true; }
  // The memory is not cleared. Errors: INVALID_ARGUMENT for a negative size; RESOURCE_EXHAUSTED.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) override;
  // A buffer over memory of the caller, who keeps it valid. Errors: INVALID_ARGUMENT for a negative
  // size or an address that is not a multiple of 32 (what files and vector loads need).
  absl::StatusOr<std::unique_ptr<Buffer>> Wrap(void* data, int64_t bytes, BufferUsage usage);

 private:
  std::string name_;
  Device& device_;
  int64_t max_bytes_;
};

}  // namespace weft
