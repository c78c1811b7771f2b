// Ranks that round differently, and what they must not each do for themselves (decision 18).
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/graph/op.h"

namespace weft {

// `ranks` are positions in `devices`. Empty if all ranks are of the kind of the first and have its
// arithmetic (Device::arithmetic()): then what they compute from the same values has the same bits.
// Else, for people, the first that has not, and how both compute.
std::string UnlikeRanks(absl::Span<Device* const> devices, absl::Span<const int32_t> ranks);

// Whether the result of an op says which of its values it takes, so that values whose last bits
// differ may give quite another one.
bool Chooses(Op op);

}  // namespace weft
