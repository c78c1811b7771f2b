// Machines that are not there: devices and links from a file, for plans without hardware (decision
// 27).
//
//   {"hosts": [{"name": "alpha", "devices": [
//       {"kind": "gpu", "memory_bytes": 25769803776, "flops": 8e13, "bandwidth": 1e12,
//        "ops": {"refuse": ["mul_mat_id"], "refuse_types": ["MXFP4"]},
//        "batch": {"min": 8, "max": 4096, "offload": 32}},
//       {"kind": "cpu", "memory_bytes": 137438953472}]},
//     {"name": "beta", "machine": "alpha", "devices": [{"kind": "cpu"}]}],
//    "links": [{"a": "alpha", "b": "local", "latency_us": 5, "bytes_per_s": 1.2e10}]}
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/null_device.h"

namespace weft {

inline constexpr int64_t kMaxInventoryBytes = int64_t{16} << 20;
inline constexpr int64_t kMaxInventoryDevices = 65536;
inline constexpr int64_t kMaxInventoryLinks = 1 << 20;
inline constexpr size_t kMaxHostNameBytes = 256;

// What the file says about a device that a Device does not; 0: nothing.
struct DeviceSpeed {
  double flops = 0;        // per second
  double bytes_per_s = 0;  // of its memory ("bandwidth")
};

// A connection of two hosts, by name; "local" is the coordinator's.
struct InventoryLink {
  std::string a, b;
  double latency_us = 0;
  double bytes_per_s = 0;
};

class Inventory {
 public:
  // Hosts are processes. `machine` is the one that a host runs on, its own name if it is left out:
  // hosts with the same are on one.
  // A device has these keys; all but `kind` may be left out:
  //   kind               "gpu", "accel" or "cpu"
  //   memory_bytes       0: unknown
  //   flops, bandwidth   per second
  //   ops                list of the ops it runs (all others it refuses), or an object with lists
  //                      `refuse` (ops) and `refuse_types` (of sources and results)
  //   batch              `min` and `max` tokens that it prefers, `offload`: from how many tokens on
  //                      it asks for weights of host memory (0: never; GPUs: 32)
  //   layout             packing of its memory, "standard"
  //   shares_memory_of   name of the device of its host in whose memory it computes; accelerators:
  //                      their host's first CPU
  //   reads_host_memory  false
  //   arithmetic         a word; devices of one kind with equal words compute the same bits
  // Names are w<i>.<kind><j> by the order of the hosts, local.<kind><j> of the host "local". The
  // list has GPUs first, then accelerators, then CPUs, and ends with local.cpu0, which is added
  // where the file has none. Errors: INVALID_ARGUMENT with the path of the value at fault, as
  // "hosts[1].devices[0].kind: ..."; unknown keys are errors.
  static absl::StatusOr<Inventory> Parse(std::string_view json);
  // Errors: as Parse and MappedFile::Open; all name the file.
  static absl::StatusOr<Inventory> Read(const std::string& path);

  // In the scheduler's order; valid as long as the inventory.
  absl::Span<Device* const> devices() const { return devices_; }
  absl::Span<const DeviceSpeed> speeds() const { return speeds_; }  // by device
  absl::Span<const InventoryLink> links() const { return links_; }

 private:
  std::vector<std::unique_ptr<NullDevice>> owned_;
  std::vector<Device*> devices_;
  std::vector<DeviceSpeed> speeds_;
  std::vector<InventoryLink> links_;
};

}  // namespace weft
