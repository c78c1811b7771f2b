// An accelerator that computes large products in the memory of a CPU device, by OpenBLAS.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/blas/blas_library.h"
#include "common/cpu/cpu_device.h"
#include "common/device/device.h"

namespace weft {

struct BlasDeviceOptions {
  std::string name = "blas0";
  int threads = 1;  // the launching thread included
};

// From what size on a product is worth the way through BLAS (tests/bench/blas_bench.cc): it packs
// both operands anew, which fewer columns do not pay for, and expands F16 and BF16 weights before,
// which takes as long as some twenty columns.
inline constexpr int64_t kBlasLeastColumns = 32;
inline constexpr int64_t kBlasLeastColumnsOfHalves = 64;  // of F16 and BF16 weights
inline constexpr int64_t kBlasLeastExtent = 64;           // of k and of the rows

// Takes mul_mat of packed F32, F16 and BF16 weights with F32 columns, and nothing else. Its memory
// is the CPU's own buffer type, so that work moves between the two without a copy. Results differ
// in their last bits from the CPU's, and may depend on the number of threads (decision 20: it is
// opt-in). Thread-safe; products take turns.
class BlasDevice final : public Device {
 public:
  // `cpu` outlives the device. Errors: INVALID_ARGUMENT for the number of threads or a null
  // library.
  static absl::StatusOr<std::unique_ptr<BlasDevice>> Create(CpuDevice& cpu,
                                                            std::shared_ptr<BlasLibrary> library,
                                                            const BlasDeviceOptions& options);

  const std::string& name() const override { return options_.name; }
  const std::string& description() const override { return description_; }
  DeviceKind kind() const override { return DeviceKind::kAccelerator; }
  const std::string& host() const override { return cpu_.host(); }
  const std::string& machine() const override { return cpu_.machine(); }
  DeviceMemory memory() const override { return cpu_.memory(); }
  DeviceCapabilities capabilities() const override;
  BufferType& buffer_type() override { return cpu_.buffer_type(); }
  Support Supports(const Graph& graph, NodeId id) const override;
  Support Supports(const BufferType& type) const override;
  bool Wants(const Graph&, NodeId) const override { return false; }
  // At most kBlasPanelBytes, or one row.
  int64_t WorkspaceBytes(const Graph& graph, NodeId id) const override;
  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                         BufferUsage usage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) override;

  int threads() const { return options_.threads; }

 private:
  friend class BlasBackend;

  BlasDevice(CpuDevice& cpu, std::shared_ptr<BlasLibrary> library,
             const BlasDeviceOptions& options);

  CpuDevice& cpu_;
  const std::shared_ptr<BlasLibrary> library_;
  const BlasDeviceOptions options_;
  const std::string description_;
};

}  // namespace weft
