#include "coordinator/explain/placement_summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

class SummaryMaker {
 public:
  SummaryMaker(const Model& model, const PlacedDevices& placed) : model_(model), placed_(placed) {}

  absl::StatusOr<PlacementSummary> Make(const CacheShape& caches) {
    ASSIGN_OR_RETURN(const HeldSlices held, HoldSlices(model_, placed_));
    ASSIGN_OR_RETURN(const std::vector<HeldBytes> bytes,
                     CountHeldBytes(model_, placed_, held, caches));
    AddDevices(held, bytes);
    AddGroups(held);
    AddLayers();
    AddStrays();
    const std::vector<PlacementRemark>& remarks = placed_.placement.remarks;
    for (size_t i = 0; i < std::min(remarks.size(), kMostSummaryLines); ++i) {
      summary_.remarks.push_back(remarks[i].text);
    }
    return std::move(summary_);
  }

 private:
  const std::string& Name(int32_t device) const { return placed_.devices[device]->name(); }

  void AddDevices(const HeldSlices& held, const std::vector<HeldBytes>& bytes) {
    for (size_t d = 0; d < held.layout.devices.size(); ++d) {
      const Device& device = *held.layout.devices[d];
      summary_.devices.push_back({device.name(), std::string(DeviceKindName(device.kind())),
                                  device.host(), device.description(), device.memory(), bytes[d]});
    }
  }

  void AddGroups(const HeldSlices& held) {
    for (size_t d = 0; d < placed_.devices.size(); ++d) {
      const std::vector<int32_t>& ranks = held.layout.ranks[d];
      if (ranks.size() < 2) continue;
      SummaryGroup group;
      group.name = Name(static_cast<int32_t>(d));
      for (const int32_t rank : ranks) group.ranks.push_back(held.layout.devices[rank]->name());
      if (d < placed_.rank_shares.size()) group.shares = placed_.rank_shares[d];
      group.shares.resize(ranks.size(), group.shares.empty() ? 1 : 0);
      double sum = 0;
      for (const double share : group.shares) sum += share;
      for (double& share : group.shares) share /= sum > 0 ? sum : 1;
      summary_.groups.push_back(std::move(group));
    }
  }

  // What put a layer (-1: what belongs to none) where it is: the reason of a weight that is there.
  std::string Why(int32_t layer, bool input, int32_t device) const {
    for (size_t i = 0; i < model_.weights().size(); ++i) {
      const Weight& weight = model_.weights()[i];
      const bool embeds = weight.role == WeightRole::kTokenEmbedding;
      if (weight.layer != layer || embeds != input) continue;
      if (placed_.placement.weights[i] == device) return placed_.placement.weight_reasons[i];
    }
    return "";
  }

  void AddLayers() {
    const ModelPlacement& placement = placed_.placement;
    using Part = SummaryLayers::Part;
    summary_.layers.push_back(
        {Part::kInput, 0, 0, Name(placement.input_device), Why(-1, true, placement.input_device)});
    const auto count = static_cast<int32_t>(placement.layer_devices.size()) - 1;
    for (int32_t first = 0; first < count;) {
      const int32_t device = placement.layer_devices[first];
      int32_t last = first;
      while (last + 1 < count && placement.layer_devices[last + 1] == device) ++last;
      summary_.layers.push_back(
          {Part::kLayers, first, last, Name(device), Why(first, false, device)});
      first = last + 1;
    }
    const int32_t output = placement.layer_devices.back();
    summary_.layers.push_back({Part::kOutput, 0, 0, Name(output), Why(-1, false, output)});
  }

  void AddStray(const std::string& name, int32_t device, const std::string& why) {
    for (SummaryStray& known : summary_.strays) {
      if (known.device != Name(device) || known.why != why) continue;
      ++known.count;
      return;
    }
    if (summary_.strays.size() < kMostSummaryLines) {
      summary_.strays.push_back({name, 1, Name(device), why});
    } else {
      ++summary_.strays_left_out;
    }
  }

  void AddStrays() {
    const ModelPlacement& placement = placed_.placement;
    for (size_t i = 0; i < placement.weights.size(); ++i) {
      const Weight& weight = model_.weights()[i];
      if (placement.weights[i] == HomeDevice(weight, placement)) continue;
      AddStray(weight.name, placement.weights[i], placement.weight_reasons[i]);
    }
    for (size_t i = 0; i < placement.caches.size(); ++i) {
      const CacheSpec& cache = model_.caches()[i];
      if (placement.caches[i] == placement.layer_devices[cache.layer]) continue;
      AddStray(absl::StrCat(cache.is_value ? "values" : "keys", " of layer ", cache.layer),
               placement.caches[i], placement.cache_reasons[i]);
    }
  }

  const Model& model_;
  const PlacedDevices& placed_;
  PlacementSummary summary_;
};

}  // namespace

absl::StatusOr<PlacementSummary> SummarizePlacement(const Model& model, const PlacedDevices& placed,
                                                    const CacheShape& caches) {
  return SummaryMaker(model, placed).Make(caches);
}

}  // namespace weft
