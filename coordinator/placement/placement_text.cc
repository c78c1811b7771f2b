#include "coordinator/placement/placement_text.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// "layer 3", or "layers 3 to 7".
std::string RangeText(size_t first, size_t last) {
  return first == last ? absl::StrCat("layer ", first)
                       : absl::StrCat("layers ", first, " to ", last);
}

void AppendLayers(const ModelPlacement& placement, absl::Span<Device* const> devices,
                  std::string& out) {
  const std::vector<int32_t>& layers = placement.layer_devices;
  absl::StrAppend(&out, "input layer: ", devices[placement.input_device]->name(), "\n");
  const size_t count = layers.size() - 1;
  for (size_t first = 0; first < count;) {
    size_t last = first;
    while (last + 1 < count && layers[last + 1] == layers[first]) ++last;
    absl::StrAppend(&out, RangeText(first, last), ": ", devices[layers[first]]->name(), "\n");
    first = last + 1;
  }
  absl::StrAppend(&out, "output layer: ", devices[layers[count]]->name(), "\n");
}

void AppendTotals(const ModelPlacement& placement, const Model& model,
                  absl::Span<Device* const> devices, std::string& out) {
  struct Total {
    int64_t weights = 0;
    int64_t caches = 0;
  };
  std::vector<Total> totals(devices.size());
  const std::vector<int64_t> bytes = WeightBytesByDevice(model, placement.weights, devices.size());
  for (size_t i = 0; i < placement.weights.size(); ++i) {
    ++totals[placement.weights[i]].weights;
  }
  for (const int32_t device : placement.caches) ++totals[device].caches;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (totals[i].weights == 0 && totals[i].caches == 0) continue;
    absl::StrAppend(&out, devices[i]->name(), ": ", totals[i].weights, " weights, ", bytes[i],
                    " bytes, ", totals[i].caches, " caches\n");
  }
}

}  // namespace

std::string PlacementText(const ModelPlacement& placement, const Model& model,
                          absl::Span<Device* const> devices) {
  std::string out;
  AppendLayers(placement, devices, out);
  AppendTotals(placement, model, devices, out);
  for (size_t i = 0; i < placement.weights.size(); ++i) {
    const Weight& weight = model.weights()[i];
    if (placement.weights[i] == HomeDevice(weight, placement)) continue;
    absl::StrAppend(&out, "weight ", weight.name, ": ", devices[placement.weights[i]]->name(), " (",
                    placement.weight_reasons[i], ")\n");
  }
  for (size_t i = 0; i < placement.caches.size(); ++i) {
    const CacheSpec& cache = model.caches()[i];
    if (placement.caches[i] == placement.layer_devices[cache.layer]) continue;
    absl::StrAppend(&out, cache.is_value ? "values" : "keys", " of layer ", cache.layer, ": ",
                    devices[placement.caches[i]]->name(), " (", placement.cache_reasons[i], ")\n");
  }
  for (size_t i = 0; i < placement.attention_pins.size(); ++i) {
    if (placement.attention_pins[i] < 0) continue;
    if (placement.attention_pins[i] == placement.layer_devices[i]) continue;
    absl::StrAppend(&out, "attention of layer ", i, ": ",
                    devices[placement.attention_pins[i]]->name(), "\n");
  }
  for (const PlacementRemark& remark : placement.remarks) {
    absl::StrAppend(&out, "remark: ", remark.text, "\n");
  }
  return out;
}

}  // namespace weft
