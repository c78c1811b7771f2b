// The devices of a tensor-parallel run: those that hold layers, in groups that look like one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/meta/meta_device.h"

namespace weft {

struct RankGroups {
  std::vector<std::unique_ptr<MetaDevice>> groups;
  std::vector<Device*> devices;                  // groups, then what is in none; the last is a CPU
  std::vector<std::vector<double>> rank_shares;  // by device; empty for those that are no group
  std::vector<double> layer_shares;              // by group, for the layers between them
};

// Groups of `tensor_ranks` devices each (0: one of all) of those in `devices` that hold layers, in
// their order. `shares` by device that holds layers, missing ones 0; empty: equal ones.
// Accelerators beside the memory of a rank are left out. Errors: INVALID_ARGUMENT naming the flag:
// fewer than two devices, a number that does not divide them, bad shares, a group without share.
absl::StatusOr<RankGroups> GroupRanks(absl::Span<Device* const> devices,
                                      const std::vector<double>& shares, int64_t tensor_ranks);

}  // namespace weft
