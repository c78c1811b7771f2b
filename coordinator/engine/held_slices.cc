#include "coordinator/engine/held_slices.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "coordinator/engine/model_layout.h"
#include "coordinator/meta/meta_device.h"

namespace weft {
namespace {

// Devices without groups, and where the ranks of each are among them.
void FlattenDevices(const PlacedDevices& placed, HeldSlices& held) {
  for (Device* device : placed.devices) {
    std::vector<int32_t>& ranks = held.layout.ranks.emplace_back();
    const auto* group = dynamic_cast<const MetaDevice*>(device);
    const std::vector<Device*> parts =
        group == nullptr ? std::vector<Device*>{device} : group->ranks();
    held.split = held.split || group != nullptr;
    for (Device* part : parts) {
      ranks.push_back(static_cast<int32_t>(held.layout.devices.size()));
      held.layout.devices.push_back(part);
    }
  }
}

// How the model lies on each device of the plan; empty for those that are no group.
absl::StatusOr<std::vector<ModelLayout>> LayOutGroups(const Model& model,
                                                      const PlacedDevices& placed,
                                                      const HeldSlices& held) {
  std::vector<ModelLayout> layouts(placed.devices.size());
  for (size_t d = 0; d < placed.devices.size(); ++d) {
    if (held.layout.ranks[d].size() < 2 && placed.devices[d]->kind() != DeviceKind::kMeta) continue;
    std::vector<double> shares(held.layout.ranks[d].size(), 1);
    if (d < placed.rank_shares.size() && !placed.rank_shares[d].empty()) {
      shares = placed.rank_shares[d];
      shares.resize(held.layout.ranks[d].size(), 0);
    }
    ASSIGN_OR_RETURN(layouts[d], LayOutModel(model, shares));
  }
  return layouts;
}

}  // namespace

std::vector<ByteRun> SliceRuns(const TensorLayout& layout, const SplitState& state, int32_t rank) {
  if (!state.cut()) return {{0, *ByteExtent(layout), 1, 0}};
  const int32_t axis = state.axis;
  const int64_t block = axis == 0 ? GetDTypeInfo(layout.dtype).block_elements : 1;
  const int64_t step = layout.nb[axis];
  const int64_t run = layout.ne[axis] / block * step;
  const int64_t repeats = *ByteExtent(layout) / run;
  std::vector<IndexRange> ranges;
  for (const CutSegment& segment : state.segments) {
    if (segment.ranks[rank].size() > 0) ranges.push_back(segment.ranks[rank]);
  }
  std::vector<ByteRun> runs;
  const auto bytes = [&](const IndexRange& range) { return range.size() / block * step; };
  if (ranges.size() == 1) {
    const ByteRun one = {ranges[0].begin / block * step, bytes(ranges[0]), repeats, run};
    if (one.bytes == run) return {{one.offset, run * repeats, 1, 0}};  // everything
    return {repeats == 1 ? ByteRun{one.offset, one.bytes, 1, 0} : one};
  }
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    for (const IndexRange& range : ranges) {
      runs.push_back({repeat * run + range.begin / block * step, bytes(range), 1, 0});
    }
  }
  return runs;
}

absl::StatusOr<HeldSlices> HoldSlices(const Model& model, const PlacedDevices& placed) {
  HeldSlices held;
  FlattenDevices(placed, held);
  held.layout.links = placed.rank_links;
  ASSIGN_OR_RETURN(const std::vector<ModelLayout> layouts, LayOutGroups(model, placed, held));
  const auto is_group = [&](int32_t d) { return !layouts[d].weights.empty(); };
  for (size_t w = 0; w < model.weights().size(); ++w) {
    const int32_t home = placed.placement.weights[w];
    const Weight& weight = model.weights()[w];
    LeafSlices& slices = held.layout.weights.emplace_back();
    if (is_group(home)) slices.state = layouts[home].weights[w];
    for (size_t r = 0; r < held.layout.ranks[home].size(); ++r) {
      const auto rank = static_cast<int32_t>(r);
      const bool has = HasPart(slices.state, rank);
      slices.ids.push_back(has ? static_cast<int32_t>(held.weights.size()) : -1);
      if (!has) continue;
      ASSIGN_OR_RETURN(const TensorLayout layout, SliceLayout(weight.layout, slices.state, rank));
      held.weights.push_back({static_cast<int32_t>(w),
                              held.layout.devices[held.layout.ranks[home][r]], layout,
                              SliceRuns(weight.layout, slices.state, rank)});
    }
  }
  for (size_t c = 0; c < model.caches().size(); ++c) {
    const int32_t home = placed.placement.caches[c];
    LeafSlices& slices = held.layout.caches.emplace_back();
    if (is_group(home)) slices.state = layouts[home].caches[c];
    for (size_t r = 0; r < held.layout.ranks[home].size(); ++r) {
      const auto rank = static_cast<int32_t>(r);
      const int64_t heads =
          slices.state.cut() ? LocalExtent(slices.state, rank) : model.caches()[c].n_head;
      slices.ids.push_back(heads > 0 ? static_cast<int32_t>(held.caches.size()) : -1);
      if (heads == 0) continue;
      held.caches.push_back(
          {static_cast<int32_t>(c), held.layout.devices[held.layout.ranks[home][r]], heads});
    }
  }
  return held;
}

}  // namespace weft
