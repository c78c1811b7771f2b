// Where tensors live: a kind of memory, and blocks of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

class Device;
class Buffer;

// What a buffer holds (spec A.6). Planners and kernels may rely on it.
enum class BufferUsage : uint8_t {
  kAny,      // caches and user tensors: stay where they are
  kWeights,  // written once while loading, then constant
  kCompute,  // intermediate results of one step
};

// A kind of memory on one device. Two buffer types are the same kind iff they are the same object.
class BufferType {
 public:
  virtual ~BufferType() = default;
  virtual const std::string& name() const = 0;
  virtual Device& device() const = 0;
  // Power of two; offsets of tensors inside a buffer are multiples of it.
  virtual int64_t alignment() const = 0;
  // Largest single allocation in bytes.
  virtual int64_t max_bytes() const = 0;
  // Bytes to reserve for a tensor: its byte extent, or more where the device pads.
  virtual int64_t TensorBytes(const TensorLayout& layout) const = 0;
  // True: the processor can address it and tensors lie in it in their standard layout.
  virtual bool is_host() const = 0;
  // How tensors lie in it, for people: "standard", or the name of a packing that only some devices
  // read.
  virtual std::string_view layout() const { return "standard"; }
  // Zero bytes give a valid empty buffer. Errors: RESOURCE_EXHAUSTED, never an abort.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage) = 0;
};

// One block of memory. Set, Get, Fill and CopyFrom are synchronous: complete when they return. They
// do not wait for work queued on a backend; that is the caller's business.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual BufferType& type() const = 0;
  virtual int64_t size() const = 0;
  virtual BufferUsage usage() const = 0;
  // First byte where type().is_host(), else null.
  virtual void* host_data() = 0;
  // Errors: INVALID_ARGUMENT unless [offset, offset + bytes) lies inside the buffer.
  virtual absl::Status Set(int64_t offset, const void* data, int64_t bytes) = 0;
  virtual absl::Status Get(int64_t offset, void* data, int64_t bytes) = 0;
  virtual absl::Status Fill(int64_t offset, uint8_t value, int64_t bytes) = 0;
};

// INVALID_ARGUMENT unless [offset, offset + bytes) lies inside `buffer`; overflow-safe.
absl::Status CheckRange(const Buffer& buffer, int64_t offset, int64_t bytes);

// Copies between any two buffers: directly where one is host memory, else through a bounded host
// staging area.
absl::Status CopyBuffer(Buffer& source, int64_t source_offset, Buffer& destination,
                        int64_t destination_offset, int64_t bytes);

}  // namespace weft
