// The processor and its memory as a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/cpu_features.h"
#include "common/base/mutex.h"
#include "common/cpu/compute_pool.h"
#include "common/cpu/cpu_buffer.h"
#include "common/cpu/kernels/kernel_table.h"
#include "common/device/device.h"

namespace weft {

struct CpuDeviceOptions {
  std::string name = "cpu0";
  std::string host = "local";
  std::string machine = {};  // empty: the host
  int threads = 1;           // the launching thread included
  InstructionSet instruction_set = InstructionSet::kScalar;
  int64_t memory_limit_bytes = 0;  // 0: what the machine has
};

// Computes every op of the table in host memory, in place in mapped files where a buffer wraps
// them. Results do not depend on the number of threads nor on what else is in a batch; they do
// depend on the instruction set. Thread-safe; backends share its threads, so their launches take
// turns. Outlives its buffers and backends.
class CpuDevice final : public Device {
 public:
  // Errors: INVALID_ARGUMENT for the number of threads or a negative limit; FAILED_PRECONDITION
  // where the instruction set is not in this build or this processor; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<CpuDevice>> Create(const CpuDeviceOptions& options);

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return description_; }
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  const std::string& host() const override { return host_; }
  const std::string& machine() const override { return machine_; }
  // The instruction set, this release and the C library, which has functions of its own.
  const std::string& arithmetic() const override { return arithmetic_; }
  DeviceMemory memory() const override;
  DeviceCapabilities capabilities() const override;
  BufferType& buffer_type() override { return buffer_type_; }
  Support Supports(const Graph& graph, NodeId id) const override;
  // Any host memory of its machine: nothing but the address matters.
  Support Supports(const BufferType& type) const override;
  bool Wants(const Graph& graph, NodeId id) const override;
  int64_t WorkspaceBytes(const Graph& graph, NodeId id) const override;
  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                         BufferUsage usage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) override;

  int threads() const { return pool_->threads(); }
  const cpu::KernelTable& kernels() const { return *kernels_; }

 private:
  friend class CpuBackend;

  CpuDevice(const CpuDeviceOptions& options, int64_t limit_bytes, const cpu::KernelTable* kernels,
            std::unique_ptr<ComputePool> pool);

  const std::string name_;
  const std::string host_;
  const std::string machine_;
  const std::string description_;
  const std::string arithmetic_;
  const cpu::KernelTable* kernels_;
  CpuBufferType buffer_type_;
  std::unique_ptr<ComputePool> pool_;
  Mutex launch_mutex_;  // held by the backend whose launch uses the pool
};

}  // namespace weft
