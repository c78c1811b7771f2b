// The devices of a tensor-parallel run: those that hold layers, in groups that look like one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/meta/meta_device.h"
#include "coordinator/placement/placement_options.h"

namespace weft {

struct RankGroups {
  std::vector<std::unique_ptr<MetaDevice>> groups;
  std::vector<Device*> devices;                  // groups, then what is in none; the last is a CPU
  std::vector<std::vector<double>> rank_shares;  // by device; empty for those that are no group
  std::vector<double> layer_shares;              // by group, for the layers between them
};

// Groups of the devices in `devices` that hold layers, in their order, as `placement` asks for with
// tensor_ranks and layer_groups; its tensor_split are shares of those devices, missing ones 0, or
// empty: equal ones. Accelerators beside the memory of a rank are left out. Errors:
// INVALID_ARGUMENT naming the flag: fewer than two devices, a number that does not divide them, bad
// shares, a group without share.
absl::StatusOr<RankGroups> GroupRanks(absl::Span<Device* const> devices,
                                      const PlacementOptions& placement);

}  // namespace weft
