// Which device computes which layer (spec F.9, decisions 4 and 26).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/placement/placement_remark.h"

namespace weft {

// Devices are positions in the scheduler's list.
struct LayerAssignment {
  std::vector<int32_t> layer_devices;    // that may hold layers, in list order
  std::vector<int32_t> layers;           // n_layer + 1 entries: the last is the output layer
  int64_t first_offloaded = 0;           // layers before it are left to a host's CPU
  int32_t input_device = 0;              // the CPU of the host of the first layer
  std::vector<int32_t> host_cpus;        // by device: HostCpus
  std::vector<PlacementRemark> remarks;  // what was asked for without effect
};

// The devices that may hold layers: GPUs, and the CPUs of workers that have no GPU; the last device
// of the list (the coordinator's CPU) only where there is no other. Accelerators hold nothing.
std::vector<int32_t> LayerDevices(absl::Span<Device* const> devices);

// By device the CPU of its machine: the device itself if it is one (or a group without machine),
// else the last of its host, as in the scheduler, else the last of the list.
std::vector<int32_t> HostCpus(absl::Span<Device* const> devices);

// INVALID_ARGUMENT naming --tensor-split unless all are finite numbers >= 0.
absl::Status CheckShares(absl::Span<const double> shares);

// "w0.gpu0, w1.gpu0".
std::string DeviceNames(absl::Span<Device* const> devices, absl::Span<const int32_t> which);

// `devices` ends with a CPU; with SplitMode::kTensor it lists groups, between which layers are
// spread. Errors: INVALID_ARGUMENT naming the flag and what there is.
absl::StatusOr<LayerAssignment> AssignLayers(absl::Span<Device* const> devices, int64_t n_layer,
                                             const PlacementOptions& options);

}  // namespace weft
