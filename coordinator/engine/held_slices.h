// What of a model's weights and caches each device holds: all of it, or as a rank its slices.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/meta/rank_graph.h"
#include "coordinator/models/model.h"
#include "coordinator/weights/weight_slice.h"

namespace weft {

// A cache on one device: all of it, or a rank's heads.
struct CacheSlice {
  int32_t cache = 0;
  Device* device = nullptr;
  int64_t n_head = 0;  // KV heads
};

// Slices are numbered: the ids of leafs in graphs that are computed, and of their bindings. Where
// no device is a group, that is the weight's or cache's own id.
struct HeldSlices {
  std::vector<WeightSlice> weights;
  std::vector<CacheSlice> caches;
  RankLayout layout;
  bool split = false;  // some device is a group of ranks
};

// `placed` may list MetaDevices; its shares (by rank of each) say how they are cut. Errors: those
// of LayOutModel.
absl::StatusOr<HeldSlices> HoldSlices(const Model& model, const PlacedDevices& placed);

// The bytes of `rank`'s slice, of a weight laid out like that.
std::vector<ByteRun> SliceRuns(const TensorLayout& layout, const SplitState& state, int32_t rank);

}  // namespace weft
