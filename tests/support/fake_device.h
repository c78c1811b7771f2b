// A device for tests that behaves as badly as a real accelerator may (decision 31).
//
// Each backend has a thread of its own and runs its queue later than it was filled, after random
// delays. Its memory cannot be used by the host: every byte is stored masked, so that a copy that
// was forgotten shows as garbage. Fresh and freed memory holds NaNs. It computes with the scalar
// oracle of common/cpu/reference, in its own memory, in that of other fake devices and of the host,
// where it is told that it may.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/device/device.h"

namespace weft {

struct FakeDeviceOptions {
  std::string name = "fake0";
  DeviceKind kind = DeviceKind::kGpu;
  std::string host = "local";
  std::string machine = {};     // empty: the host
  std::string arithmetic = {};  // empty: the description
  BatchRange preferred_batch;
  uint64_t seed = 1;   // of the delays
  bool delays = true;  // false: runs its queue as fast as it can
  int64_t memory_bytes = int64_t{1} << 32;
  int64_t max_buffer_bytes = int64_t{1} << 32;
  int64_t alignment = 64;     // power of two, >= 64
  int64_t padding_bytes = 0;  // that every tensor takes in its memory beyond its extent
  // Calls its memory host memory, so that schedulers offload from it and copy used experts out of
  // it. It is masked all the same.
  bool says_host = false;

  // What it refuses: nodes with these ops or with a source or result of these types, and anything
  // that `refuses` says yes to.
  std::vector<Op> refused_ops;
  std::vector<DType> refused_dtypes;
  std::function<bool(const Graph&, NodeId)> refuses;
  // What it computes wrong: nodes with these ops, and what `corrupts` says yes to. F32 results are
  // negated; of others the first byte is changed.
  std::vector<Op> corrupt_ops;
  std::function<bool(const Graph&, NodeId)> corrupts;
  // What it rounds otherwise than others: the element i of F32 results is i representable values
  // further from zero.
  std::function<bool(const Graph&, NodeId)> rounds_otherwise;
  // Whose memory it computes in: another fake device, or one in host memory; outlives it. Null: its
  // own.
  Device* shares_memory_of = nullptr;
  // Buffer types of other devices that it uses beside its own, by name. Its kernels work in those
  // of fake devices and in host memory.
  std::vector<std::string> accepted_buffer_types;
  // Wants a node whose weight lies in host memory from this batch on (OffloadBatch); 0: never.
  int64_t offload_batch = 0;
  // Called on the backend's thread before each node; an error becomes the node's. For tests of
  // errors inside a step and for holding a stream at a point.
  std::function<absl::Status(const Graph&, NodeId)> before_node;
  // Called on the backend's thread after each node, with where its result lies.
  std::function<void(const Graph&, NodeId, const TensorPlace&)> after_node;
};

// What was asked of all backends of a device.
struct FakeTraffic {
  int64_t prepared = 0;  // executables
  int64_t synchronizations = 0;
  int64_t copies = 0;
  int64_t copied_bytes = 0;
};

// Thread-safe. Outlives its buffers and backends.
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeDeviceOptions options);
  ~FakeDevice() override;

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
  BatchRange preferred_batch() const override { return options_.preferred_batch; }
  DeviceMemory memory() const override;
  DeviceCapabilities capabilities() const override;
  BufferType& buffer_type() override;
  Support Supports(const Graph& graph, NodeId id) const override;
  Support Supports(const BufferType& type) const override;
  bool Wants(const Graph& graph, NodeId id) const override;
  int64_t WorkspaceBytes(const Graph&, NodeId) const override { return 0; }
  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                         BufferUsage usage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) override;

  // True if it computes node `id` wrong.
  bool Corrupts(const Graph& graph, NodeId id) const;
  const FakeDeviceOptions& options() const { return options_; }
  int64_t used_bytes() const;  // of its own memory
  FakeTraffic traffic() const;

 private:
  friend class FakeBackend;
  class FakeBufferType;

  // Errors: INVALID_ARGUMENT for a negative size; RESOURCE_EXHAUSTED.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, BufferUsage usage);

  const FakeDeviceOptions options_;
  const std::string description_ = "test device with masked memory";
  std::unique_ptr<FakeBufferType> buffer_type_;
  mutable Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  FakeTraffic traffic_ ABSL_GUARDED_BY(mutex_);
  uint64_t backends_opened_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
