#include "coordinator/explain/held_bytes.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "common/base/status_macros.h"

namespace weft {
namespace {

size_t PositionOf(const HeldSlices& held, const Device* device) {
  const std::vector<Device*>& all = held.layout.devices;
  return static_cast<size_t>(std::find(all.begin(), all.end(), device) - all.begin());
}

void CountWeights(const Model& model, const PlacedDevices& placed, const HeldSlices& held,
                  std::vector<HeldBytes>& counts) {
  const std::vector<int64_t> bytes =
      WeightBytesByDevice(model, placed.placement.weights, placed.devices.size());
  for (size_t d = 0; d < bytes.size(); ++d) {
    const std::vector<int32_t>& ranks = held.layout.ranks[d];
    if (ranks.size() == 1) counts[ranks.front()].weight_bytes = bytes[d];
  }
  std::set<std::tuple<const Device*, const GgufTensor*, int64_t>> seen;
  for (const WeightSlice& slice : held.weights) {
    HeldBytes& device = counts[PositionOf(held, slice.device)];
    ++device.weights;
    if (held.layout.weights[slice.weight].ids.size() == 1) continue;
    const GgufTensor* first = model.weight_table().TensorsOf(model.weights()[slice.weight]).front();
    if (!seen.insert({slice.device, first, slice.runs[0].offset}).second) continue;
    device.weight_bytes += slice.device->buffer_type().TensorBytes(slice.layout);
  }
}

}  // namespace

absl::StatusOr<std::vector<HeldBytes>> CountHeldBytes(const Model& model,
                                                      const PlacedDevices& placed,
                                                      const HeldSlices& held,
                                                      const CacheShape& caches) {
  std::vector<HeldBytes> counts(held.layout.devices.size());
  CountWeights(model, placed, held, counts);
  for (const CacheSlice& slice : held.caches) {
    CacheSpec cache = model.caches()[slice.cache];
    cache.n_head = slice.n_head;
    const DType dtype = cache.is_value ? caches.value_type : caches.key_type;
    ASSIGN_OR_RETURN(const TensorLayout layout,
                     PackedLayout(dtype, cache.PageExtents(caches.pages)));
    counts[PositionOf(held, slice.device)].cache_bytes +=
        slice.device->buffer_type().TensorBytes(layout);
  }
  return counts;
}

}  // namespace weft
