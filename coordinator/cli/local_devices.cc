#include "coordinator/cli/local_devices.h"

#include "absl/strings/str_cat.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/blas/blas_device.h"
#include "common/blas/blas_library.h"
#include "common/cpu/cpu_device.h"
#include "common/host/control_group.h"
#include "common/transport/host_identity.h"

namespace weft {
namespace {

constexpr int32_t kMaxThreads = 1024;

}  // namespace

absl::StatusOr<LocalDevices> OpenLocalDevices(const LocalDeviceOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("-t: ", options.threads, " threads, want 1 to ", kMaxThreads));
  }
  LocalDevices local;
  local.threads = options.threads > 0 ? options.threads : DefaultThreads();
  CpuDeviceOptions cpu_options;
  cpu_options.name = "local.cpu0";
  cpu_options.machine = HostIdentity();
  cpu_options.threads = local.threads;
  cpu_options.memory_limit_bytes = DefaultMemoryBytes();
  cpu_options.instruction_set = BestInstructionSet();
  if (!options.instruction_set.empty()) {
    ASSIGN_OR_RETURN(cpu_options.instruction_set, ParseInstructionSet(options.instruction_set));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> cpu, CpuDevice::Create(cpu_options));
  if (options.blas) {
    absl::StatusOr<std::shared_ptr<BlasLibrary>> library = BlasLibrary::Load();
    if (!library.ok()) {
      return absl::Status(library.status().code(),
                          absl::StrCat("--accel blas: ", library.status().message()));
    }
    BlasDeviceOptions blas_options;
    blas_options.name = "local.blas0";
    blas_options.threads = local.threads;
    ASSIGN_OR_RETURN(local.accelerator,
                     BlasDevice::Create(*cpu, *std::move(library), blas_options));
    local.devices.push_back(local.accelerator.get());
  }
  local.devices.push_back(cpu.get());
  local.cpu = std::move(cpu);
  return local;
}

}  // namespace weft
