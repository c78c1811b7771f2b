#include "coordinator/placement/layer_assignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

bool HoldsLayers(DeviceKind kind) { return kind == DeviceKind::kGpu || kind == DeviceKind::kMeta; }

bool IsUnknown(const DeviceMemory& memory) {
  return memory.free_bytes == 0 && memory.total_bytes == 0;
}

// Shares by free memory; a device that does not know counts with its host's memory. If that is
// unknown too, or nothing is free, all count the same.
std::vector<double> MemoryShares(absl::Span<Device* const> devices,
                                 absl::Span<const int32_t> holders,
                                 absl::Span<const int32_t> host_cpus) {
  std::vector<double> shares;
  for (const int32_t holder : holders) {
    DeviceMemory memory = devices[holder]->memory();
    if (IsUnknown(memory)) memory = devices[host_cpus[holder]]->memory();
    if (IsUnknown(memory)) return std::vector<double>(holders.size(), 1);
    shares.push_back(static_cast<double>(std::max<int64_t>(memory.free_bytes, 0)));
  }
  const bool all_full = std::all_of(shares.begin(), shares.end(), [](double s) { return s == 0; });
  return all_full ? std::vector<double>(holders.size(), 1) : shares;
}

absl::StatusOr<std::vector<double>> CheckedShares(absl::Span<Device* const> devices,
                                                  absl::Span<const int32_t> holders,
                                                  const std::vector<double>& split) {
  if (split.size() > holders.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensor-split: ", split.size(), " shares for ", holders.size(),
                     " devices that hold layers: ", DeviceNames(devices, holders)));
  }
  RETURN_IF_ERROR(CheckShares(split));
  std::vector<double> shares = split;
  shares.resize(holders.size(), 0);
  // Sums of finite numbers may not be finite; shares are relative anyway.
  const double largest = *std::max_element(shares.begin(), shares.end());
  if (largest == 0) {
    return absl::InvalidArgumentError("--tensor-split: all shares are 0");
  }
  if (largest > 1e100 || largest < 1e-100) {
    for (double& share : shares) share /= largest;
  }
  return shares;
}

// Position in `holders` of the device that the user names, by name or number.
absl::StatusOr<int32_t> MainDevice(absl::Span<Device* const> devices,
                                   absl::Span<const int32_t> holders, const std::string& name) {
  if (name.empty()) return holders.front();
  int64_t number = 0;
  if (absl::SimpleAtoi(name, &number)) {
    if (number >= 0 && number < static_cast<int64_t>(holders.size())) return holders[number];
  } else {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i]->name() != name) continue;
      if (devices[i]->kind() != DeviceKind::kAccelerator) return static_cast<int32_t>(i);
      return absl::InvalidArgumentError(absl::StrCat(
          "--main-device: ", name, " computes in its host's memory and holds nothing"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--main-device: no device '", name, "'; layers can be on: ", DeviceNames(devices, holders)));
}

// The first layers stay on the CPU of the host of the first device with a share, the others go to
// the devices by cumulative share (spec F.9).
void SpreadLayers(const std::vector<double>& shares, int64_t n_gpu_layers,
                  LayerAssignment& result) {
  const auto count = static_cast<int64_t>(result.layers.size());
  const int64_t offloaded = n_gpu_layers < 0 ? count : std::min(n_gpu_layers, count);
  result.first_offloaded = count - offloaded;
  std::vector<double> cumulative(shares.size());
  std::partial_sum(shares.begin(), shares.end(), cumulative.begin());
  const auto device_at = [&](int64_t place) {
    const double share =
        static_cast<double>(place) / static_cast<double>(std::max<int64_t>(offloaded, 1));
    size_t k = 0;
    while (k + 1 < shares.size() && cumulative[k] / cumulative.back() <= share) ++k;
    return result.layer_devices[k];
  };
  const int32_t host = result.host_cpus[device_at(0)];
  for (int64_t layer = 0; layer < count; ++layer) {
    const bool is_offloaded = layer >= result.first_offloaded;
    result.layers[layer] = is_offloaded ? device_at(layer - result.first_offloaded) : host;
  }
}

}  // namespace

absl::Status CheckShares(absl::Span<const double> shares) {
  for (const double share : shares) {
    if (!std::isfinite(share) || share < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tensor-split: share ", share, ", want a finite number >= 0"));
    }
  }
  return absl::OkStatus();
}

std::vector<int32_t> LayerDevices(absl::Span<Device* const> devices) {
  absl::flat_hash_set<absl::string_view> served;  // hosts whose CPUs hold no layers
  served.insert(devices.back()->host());
  for (const Device* device : devices) {
    if (HoldsLayers(device->kind())) served.insert(device->host());
  }
  std::vector<int32_t> holders;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Device& device = *devices[i];
    const bool holds = HoldsLayers(device.kind()) ||
                       (device.kind() == DeviceKind::kCpu && !served.contains(device.host()));
    if (holds) holders.push_back(static_cast<int32_t>(i));
  }
  if (holders.empty()) holders.push_back(static_cast<int32_t>(devices.size()) - 1);
  return holders;
}

std::vector<int32_t> HostCpus(absl::Span<Device* const> devices) {
  absl::flat_hash_map<absl::string_view, int32_t> last;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i]->kind() != DeviceKind::kCpu) continue;
    last[devices[i]->host()] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> cpus(devices.size(), static_cast<int32_t>(devices.size()) - 1);
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto found = last.find(devices[i]->host());
    if (devices[i]->kind() == DeviceKind::kCpu) {
      cpus[i] = static_cast<int32_t>(i);
    } else if (found != last.end()) {
      cpus[i] = found->second;
    } else if (devices[i]->kind() == DeviceKind::kMeta) {
      // A group of ranks on several machines: what its ranks cannot do, no processor beside it can.
      cpus[i] = static_cast<int32_t>(i);
    }
  }
  return cpus;
}

std::string DeviceNames(absl::Span<Device* const> devices, absl::Span<const int32_t> which) {
  return absl::StrJoin(
      which, ", ", [&](std::string* out, int32_t device) { out->append(devices[device]->name()); });
}

absl::StatusOr<LayerAssignment> AssignLayers(absl::Span<Device* const> devices, int64_t n_layer,
                                             const PlacementOptions& options) {
  LayerAssignment result;
  result.layer_devices = LayerDevices(devices);
  result.host_cpus = HostCpus(devices);
  result.layers.resize(n_layer + 1);
  std::vector<double> shares;
  if (!options.tensor_split.empty()) {
    ASSIGN_OR_RETURN(shares, CheckedShares(devices, result.layer_devices, options.tensor_split));
  }
  ASSIGN_OR_RETURN(const int32_t main_device,
                   MainDevice(devices, result.layer_devices, options.main_device));
  switch (options.split_mode) {
    case SplitMode::kNone:
      if (!shares.empty()) {
        result.remarks.push_back({PlacementRemarkKind::kFlagWithoutEffect,
                                  "--tensor-split has no effect with --split-mode none"});
      }
      result.layer_devices = {main_device};
      shares = {1};
      break;
    case SplitMode::kTensor:  // over groups that are devices of the list
    case SplitMode::kLayer:
      if (!options.main_device.empty()) {
        result.remarks.push_back({PlacementRemarkKind::kFlagWithoutEffect,
                                  "--main-device has no effect without --split-mode none"});
      }
      if (shares.empty()) shares = MemoryShares(devices, result.layer_devices, result.host_cpus);
      break;
  }
  SpreadLayers(shares, options.n_gpu_layers, result);
  result.input_device = result.host_cpus[result.layers.front()];
  return result;
}

}  // namespace weft
