// What each device holds of a model: how many weights, and the bytes of weights and caches.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/models/model.h"

namespace weft {

struct HeldBytes {
  int64_t weights = 0;       // how many, or slices of so many
  int64_t weight_bytes = 0;  // a tensor that several weights share counts once
  int64_t cache_bytes = 0;
};

struct CacheShape {
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
  int64_t pages = 0;
};

// By device of held.layout.devices. `held` is HoldSlices(model, placed). Errors: INVALID_ARGUMENT
// for a cache type whose blocks do not fit.
absl::StatusOr<std::vector<HeldBytes>> CountHeldBytes(const Model& model,
                                                      const PlacedDevices& placed,
                                                      const HeldSlices& held,
                                                      const CacheShape& caches);

}  // namespace weft
