#include "common/cpu/cpu_device.h"

#include <gnu/libc-version.h>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/machine_memory.h"
#include "common/base/status_macros.h"
#include "common/cpu/cpu_backend.h"
#include "common/cpu/op_dispatch.h"

namespace weft {
namespace {

// Extents beyond this would overflow sizes computed from them, and fit no machine.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

const cpu::KernelTable* KernelsOf(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kScalar:
      return cpu::ScalarKernels();
    case InstructionSet::kAvx2:
      return cpu::Avx2Kernels();
    case InstructionSet::kAvx512:
      return cpu::Avx512Kernels();
    case InstructionSet::kNeon:
      return cpu::NeonKernels();
  }
  return nullptr;
}

Support CheckExtents(const TensorLayout& layout) {
  int64_t elements = 1;
  for (const int64_t extent : layout.ne) {
    if (extent > kMaxExtent || (extent > 0 && elements > kMaxExtent / extent)) {
      return absl::UnimplementedError(
          absl::StrCat("a tensor of ", ExtentsText(layout.ne), " is too large"));
    }
    if (extent > 0) elements *= extent;
  }
  return absl::OkStatus();
}

}  // namespace

CpuDevice::CpuDevice(const CpuDeviceOptions& options, int64_t limit_bytes,
                     const cpu::KernelTable* kernels, std::unique_ptr<ComputePool> pool)
    : name_(options.name),
      host_(options.host),
      machine_(options.machine.empty() ? options.host : options.machine),
      description_(absl::StrCat("processor, ", kernels->name, ", ", options.threads,
                                options.threads == 1 ? " thread" : " threads")),
      arithmetic_(
          absl::StrCat(kernels->name, ", weft ", WEFT_VERSION, ", glibc ", gnu_get_libc_version())),
      kernels_(kernels),
      buffer_type_(absl::StrCat(options.name, " memory"), *this, limit_bytes),
      pool_(std::move(pool)) {}

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(const CpuDeviceOptions& options) {
  if (options.memory_limit_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.name, ": memory limit of ", options.memory_limit_bytes, " bytes"));
  }
  const cpu::KernelTable* kernels =
      IsSupported(options.instruction_set) ? KernelsOf(options.instruction_set) : nullptr;
  if (kernels == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.name, ": no kernels for ",
                     AbslView(InstructionSetName(options.instruction_set)), " here"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ComputePool> pool, ComputePool::Create(options.threads));
  const int64_t limit =
      options.memory_limit_bytes > 0 ? options.memory_limit_bytes : MachineMemoryBytes();
  return std::unique_ptr<CpuDevice>(new CpuDevice(options, limit, kernels, std::move(pool)));
}

Support CpuDevice::Supports(const BufferType& type) const {
  if (type.is_host() && type.device().host() == host_) return absl::OkStatus();
  return CannotRead(*this, type);
}

DeviceMemory CpuDevice::memory() const {
  const int64_t total = buffer_type_.limit_bytes();
  return {total - buffer_type_.used_bytes(), total};
}

DeviceCapabilities CpuDevice::capabilities() const {
  DeviceCapabilities capabilities;
  capabilities.host_memory = true;
  capabilities.wraps_host_memory = true;
  return capabilities;
}

Support CpuDevice::Supports(const Graph& graph, NodeId id) const {
  RETURN_IF_ERROR(CheckRunsOnDevice(graph, id));
  const cpu::OpRow* row = cpu::OpRowOf(graph.node(id).op);
  if (row == nullptr) return absl::OkStatus();
  const reference::Operands operands = reference::OperandsOf(graph, id);
  RETURN_IF_ERROR(CheckExtents(operands.result.layout));
  for (const reference::HostTensor& source : operands.sources) {
    RETURN_IF_ERROR(CheckExtents(source.layout));
  }
  return row->supports == nullptr ? absl::OkStatus() : row->supports(operands, *kernels_);
}

bool CpuDevice::Wants(const Graph&, NodeId) const { return false; }

int64_t CpuDevice::WorkspaceBytes(const Graph& graph, NodeId id) const {
  const cpu::OpRow* row = cpu::OpRowOf(graph.node(id).op);
  if (row == nullptr || row->workspace == nullptr || !Supports(graph, id).ok()) return 0;
  return row->workspace(reference::OperandsOf(graph, id), *kernels_, threads());
}

absl::StatusOr<std::unique_ptr<Buffer>> CpuDevice::WrapHostMemory(void* data, int64_t bytes,
                                                                  BufferUsage usage) {
  return buffer_type_.Wrap(data, bytes, usage);
}

absl::StatusOr<std::unique_ptr<Backend>> CpuDevice::OpenBackend(BackendOptions options) {
  return std::make_unique<CpuBackend>(*this, std::move(options));
}

}  // namespace weft
