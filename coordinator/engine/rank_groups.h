// The devices of a tensor-parallel run: those that hold layers, in groups that look like one.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/meta/meta_device.h"
#include "coordinator/placement/placement_options.h"

namespace weft {

// With SplitMode::kTensor, puts those of placed.devices that hold layers in groups, in their order,
// as `placement` asks for with tensor_ranks and layer_groups; its tensor_split are shares of those
// devices, missing ones 0, or empty: equal ones. Then placed.devices lists the groups and what is
// in none, placed.rank_shares the shares in each, and placement.tensor_split those of the groups,
// for the layers between them. Accelerators beside the memory of a rank are left out. Returns the
// groups, which placed.devices borrows; none with another mode. Errors: INVALID_ARGUMENT naming the
// flag: fewer than two devices, a number that does not divide them, bad shares, a group without
// share.
absl::StatusOr<std::vector<std::unique_ptr<MetaDevice>>> GroupDevices(PlacedDevices& placed,
                                                                      PlacementOptions& placement);

}  // namespace weft
