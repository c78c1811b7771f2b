#include "worker/device_discovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/cpu_features.h"
#include "common/base/status_macros.h"
#include "common/blas/blas_device.h"
#include "common/blas/blas_library.h"
#include "common/cpu/cpu_device.h"

namespace weft {
namespace {

constexpr int64_t kMaxDevices = 64;

absl::StatusOr<std::unique_ptr<CpuDevice>> MakeCpu(const DeviceOptions& options) {
  CpuDeviceOptions cpu;
  cpu.name = "cpu0";
  cpu.host = options.host;
  cpu.threads = options.threads;
  cpu.memory_limit_bytes = options.memory_bytes;
  cpu.instruction_set = BestInstructionSet();
  if (!options.instruction_set.empty()) {
    ASSIGN_OR_RETURN(cpu.instruction_set, ParseInstructionSet(options.instruction_set));
  }
  return CpuDevice::Create(cpu);
}

absl::StatusOr<std::unique_ptr<Device>> MakeBlas(const DeviceOptions& options, CpuDevice* cpu) {
  if (cpu == nullptr) {
    return absl::InvalidArgumentError(
        "--devices: blas computes in the memory of the CPU device; list cpu before it");
  }
  absl::StatusOr<std::shared_ptr<BlasLibrary>> library = BlasLibrary::Load();
  if (!library.ok()) {
    return absl::Status(library.status().code(),
                        absl::StrCat("--devices blas: ", library.status().message()));
  }
  BlasDeviceOptions blas;
  blas.name = "blas0";
  blas.threads = options.threads;
  return BlasDevice::Create(*cpu, *std::move(library), blas);
}

// GPUs before accelerators before CPUs.
int Rank(const Device& device) {
  switch (device.kind()) {
    case DeviceKind::kGpu:
    case DeviceKind::kMeta:
      return 0;
    case DeviceKind::kAccelerator:
      return 1;
    case DeviceKind::kCpu:
      return 2;
  }
  return 2;
}

}  // namespace

WorkerDevices::~WorkerDevices() {
  while (!owned.empty()) owned.pop_back();
}

void WorkerDevices::Abandon(Device* device) {
  devices.erase(std::remove(devices.begin(), devices.end(), device), devices.end());
  for (std::unique_ptr<Device>& one : owned) {
    if (one.get() == device) static_cast<void>(one.release());
  }
}

absl::StatusOr<WorkerDevices> DiscoverDevices(const DeviceOptions& options,
                                              const DeviceFactory& factory) {
  WorkerDevices found;
  CpuDevice* cpu = nullptr;
  for (const std::string& kind : options.kinds) {
    if (kind == "cpu") {
      if (cpu != nullptr) return absl::InvalidArgumentError("--devices: cpu is listed twice");
      ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> made, MakeCpu(options));
      cpu = made.get();
      found.owned.push_back(std::move(made));
    } else if (kind == "blas") {
      ASSIGN_OR_RETURN(std::unique_ptr<Device> made, MakeBlas(options, cpu));
      found.owned.push_back(std::move(made));
    } else {
      absl::StatusOr<std::vector<std::unique_ptr<Device>>> made =
          factory ? factory(kind, options) : absl::NotFoundError("");
      if (absl::IsNotFound(made.status())) {
        return absl::InvalidArgumentError(
            absl::StrCat("--devices: unknown kind '", kind, "'; this build has cpu and blas"));
      }
      RETURN_IF_ERROR(made.status());
      for (std::unique_ptr<Device>& device : *made) found.owned.push_back(std::move(device));
    }
  }
  if (found.owned.empty() || static_cast<int64_t>(found.owned.size()) > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices: ", found.owned.size(), " devices, want 1 to ", kMaxDevices));
  }
  for (const std::unique_ptr<Device>& device : found.owned) found.devices.push_back(device.get());
  std::stable_sort(found.devices.begin(), found.devices.end(),
                   [](const Device* a, const Device* b) { return Rank(*a) < Rank(*b); });
  return found;
}

}  // namespace weft
