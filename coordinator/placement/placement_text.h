// A placement for people and golden files.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/model_placement.h"

namespace weft {

// Stable text, one line each: the input layer, ranges of layers on one device, the output layer,
// the weights and bytes of each device that holds some, each weight and cache that is not where
// its layer is with the reason, pins of attention, remarks.
std::string PlacementText(const ModelPlacement& placement, const Model& model,
                          absl::Span<Device* const> devices);

}  // namespace weft
