#include "coordinator/placement/model_placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor_layout.h"
#include "coordinator/placement/layer_assignment.h"
#include "coordinator/placement/leaf_consumers.h"
#include "coordinator/placement/override_rules.h"

namespace weft {
namespace {

bool IsExpert(WeightRole role) {
  return role == WeightRole::kExpertGate || role == WeightRole::kExpertUp ||
         role == WeightRole::kExpertGateUp || role == WeightRole::kExpertDown;
}

int64_t WeightBytes(const Weight& weight) { return ByteExtent(weight.layout).value_or(0); }

std::string MebibyteText(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (int64_t{1} << 20));
}

absl::Status CheckDevices(absl::Span<Device* const> devices) {
  if (devices.empty() || devices.back()->kind() != DeviceKind::kCpu) {
    return absl::InvalidArgumentError("the last device must be a CPU, which can run everything");
  }
  return absl::OkStatus();
}

// A device and why.
struct Choice {
  int32_t device = 0;
  std::string reason;
};

class Placer {
 public:
  Placer(const Model& model, absl::Span<Device* const> devices, const PlacementOptions& options,
         LayerAssignment layers, OverrideRules rules, LeafConsumers consumers)
      : model_(model),
        devices_(devices),
        options_(options),
        layers_(std::move(layers)),
        rules_(std::move(rules)),
        consumers_(std::move(consumers)) {}

  absl::StatusOr<ModelPlacement> Place();

 private:
  // Weights that one device refuses for one reason, by their type.
  struct Refusal {
    int32_t host = 0;
    std::string reason;
    int64_t weights = 0;
    int64_t bytes = 0;
  };

  int64_t n_layer() const { return model_.hyperparameters().n_layer; }
  const std::string& Name(int32_t device) const { return devices_[device]->name(); }

  std::string OffloadText() const;
  Choice LayerChoice(const Weight& weight) const;
  absl::StatusOr<Choice> Wanted(const Weight& weight);
  Choice Settle(int32_t id, Choice wanted);
  bool CopiesHostMemory(int32_t host) const;
  std::vector<Choice> CacheChoices() const;
  void PlaceCaches(const std::vector<Choice>& layers);
  void RemarkRefusals();
  void RemarkCaches(const std::vector<Choice>& layers);
  void Remark(PlacementRemarkKind kind, std::string text) {
    result_.remarks.push_back({kind, std::move(text)});
  }
  void RemarkIdleDevices();
  void RemarkMemory();

  const Model& model_;
  absl::Span<Device* const> devices_;
  const PlacementOptions& options_;
  LayerAssignment layers_;
  OverrideRules rules_;
  LeafConsumers consumers_;
  std::map<std::pair<int32_t, DType>, Refusal> refusals_;
  ModelPlacement result_;
};

std::string Placer::OffloadText() const {
  const char* mode = options_.split_mode == SplitMode::kNone ? "-sm none " : "";
  if (options_.n_gpu_layers < 0) return absl::StrCat(mode, "-ngl all");
  return absl::StrCat(mode, "-ngl ", options_.n_gpu_layers);
}

// Where the layer of a weight is. What belongs to no layer and is not the token embedding belongs
// to the output layer.
Choice Placer::LayerChoice(const Weight& weight) const {
  if (weight.role == WeightRole::kTokenEmbedding) {
    return {layers_.input_device, absl::StrCat("input layer on ", Name(layers_.input_device),
                                               ", on the host of the first layer")};
  }
  const int64_t layer = weight.layer < 0 ? n_layer() : weight.layer;
  const int32_t device = layers_.layers[layer];
  const std::string what =
      weight.layer < 0 ? "output layer" : absl::StrCat("layer ", layer, " of ", n_layer());
  const bool left = layer < layers_.first_offloaded;
  return {device, absl::StrCat(what, " on ", Name(device), " (", left ? "left to the host by " : "",
                               OffloadText(), ")")};
}

absl::StatusOr<Choice> Placer::Wanted(const Weight& weight) {
  Choice choice = LayerChoice(weight);
  const int32_t host = layers_.host_cpus[choice.device];
  ASSIGN_OR_RETURN(const std::optional<OverrideRules::Match> match, rules_.Find(weight.name));
  if (match.has_value()) {
    return Choice{match->device == OverrideRules::kHostCpu ? host : match->device,
                  rules_.Text(match->rule)};
  }
  if (!IsExpert(weight.role)) return choice;
  if (options_.cpu_moe) return Choice{host, "--cpu-moe"};
  if (weight.layer < options_.n_cpu_moe) {
    return Choice{host, absl::StrCat("--n-cpu-moe ", options_.n_cpu_moe)};
  }
  return choice;
}

// The wanted device, or the CPU of its host where it refuses what reads the weight.
Choice Placer::Settle(int32_t id, Choice wanted) {
  const int32_t host = layers_.host_cpus[wanted.device];
  if (host == wanted.device) return wanted;
  const Support support = consumers_.SupportsWeight(*devices_[wanted.device], id);
  if (support.ok()) return wanted;
  const Weight& weight = model_.weights()[id];
  const std::string reason =
      absl::StrCat(Name(wanted.device), " refuses ", AbslView(DTypeName(weight.layout.dtype)), ": ",
                   support.message());
  Refusal& refusal = refusals_[{wanted.device, weight.layout.dtype}];
  if (refusal.weights == 0) {
    refusal.host = host;
    refusal.reason = reason;
  }
  ++refusal.weights;
  refusal.bytes += WeightBytes(weight);
  return {host, reason};
}

// Would a device that spreads get a copy of what lies in the memory of that CPU?
bool Placer::CopiesHostMemory(int32_t host) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const Device* device) {
    const bool host_side =
        device->kind() == DeviceKind::kCpu || device->kind() == DeviceKind::kAccelerator;
    return !host_side && !device->Supports(devices_[host]->buffer_type()).ok();
  });
}

// By layer where its caches are and why; keys and values stay together, since attention reads both.
std::vector<Choice> Placer::CacheChoices() const {
  std::vector<Choice> layers;
  layers.reserve(static_cast<size_t>(n_layer()));
  for (int64_t layer = 0; layer < n_layer(); ++layer) {
    layers.push_back({layers_.layers[layer], absl::StrCat("with layer ", layer)});
  }
  for (size_t id = 0; id < model_.caches().size(); ++id) {
    Choice& choice = layers[model_.caches()[id].layer];
    const int32_t host = layers_.host_cpus[choice.device];
    if (host == choice.device) continue;
    if (!options_.kv_offload) {
      choice = {host, "--no-kv-offload"};
      continue;
    }
    const Support support =
        consumers_.SupportsCache(*devices_[choice.device], static_cast<int32_t>(id));
    if (support.ok()) continue;
    choice = {host, absl::StrCat(Name(choice.device), " refuses the cache: ", support.message())};
  }
  return layers;
}

void Placer::PlaceCaches(const std::vector<Choice>& layers) {
  for (const Choice& choice : layers) {
    const bool copied =
        devices_[choice.device]->kind() == DeviceKind::kCpu && CopiesHostMemory(choice.device);
    result_.attention_pins.push_back(copied ? choice.device : -1);
  }
  for (const CacheSpec& cache : model_.caches()) {
    result_.caches.push_back(layers[cache.layer].device);
    result_.cache_reasons.push_back(layers[cache.layer].reason);
  }
}

void Placer::RemarkRefusals() {
  for (const auto& [key, refusal] : refusals_) {
    Remark(PlacementRemarkKind::kRefusedWeights,
           absl::StrCat(refusal.reason, "; ", refusal.weights, " weights (",
                        MebibyteText(refusal.bytes), ") are on ", Name(refusal.host), " instead"));
  }
}

void Placer::RemarkCaches(const std::vector<Choice>& layers) {
  std::map<std::string, std::vector<int64_t>> moved;  // layers, by reason
  for (int64_t layer = 0; layer < n_layer(); ++layer) {
    if (layers[layer].device != layers_.layers[layer]) moved[layers[layer].reason].push_back(layer);
  }
  for (const auto& [reason, which] : moved) {
    Remark(options_.kv_offload ? PlacementRemarkKind::kRefusedCaches
                               : PlacementRemarkKind::kCachesOnHost,
           absl::StrCat(reason, options_.kv_offload ? "; " : ": ", "the caches of ", which.size(),
                        " of ", n_layer(),
                        " layers lie in host memory, and their attention runs on the host's CPU"));
  }
}

void Placer::RemarkIdleDevices() {
  std::vector<int32_t> idle;
  for (const int32_t device : layers_.layer_devices) {
    const auto holds = [&](const std::vector<int32_t>& list) {
      return std::find(list.begin(), list.end(), device) != list.end();
    };
    if (!holds(layers_.layers) && !holds(result_.weights)) idle.push_back(device);
  }
  if (idle.empty()) return;
  constexpr size_t kMostNamed = 8;
  const size_t named = std::min(idle.size(), kMostNamed);
  Remark(
      PlacementRemarkKind::kIdleDevices,
      absl::StrCat(DeviceNames(devices_, absl::MakeConstSpan(idle).subspan(0, named)),
                   named < idle.size() ? absl::StrCat(" and ", idle.size() - named, " more") : "",
                   idle.size() == 1 ? " holds" : " hold", " nothing"));
}

void Placer::RemarkMemory() {
  const std::vector<int64_t> bytes = WeightBytesByDevice(model_, result_.weights, devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) {
    const DeviceMemory memory = devices_[i]->memory();
    const bool known = memory.free_bytes != 0 || memory.total_bytes != 0;
    // A CPU reads weights where the file is mapped.
    if (!known || devices_[i]->kind() == DeviceKind::kCpu || bytes[i] <= memory.free_bytes)
      continue;
    Remark(PlacementRemarkKind::kTooLittleMemory,
           absl::StrCat(devices_[i]->name(), " is to hold ", MebibyteText(bytes[i]),
                        " of weights and has ", MebibyteText(memory.free_bytes), " free"));
  }
}

absl::StatusOr<ModelPlacement> Placer::Place() {
  for (size_t id = 0; id < model_.weights().size(); ++id) {
    ASSIGN_OR_RETURN(Choice wanted, Wanted(model_.weights()[id]));
    Choice settled = Settle(static_cast<int32_t>(id), std::move(wanted));
    result_.weights.push_back(settled.device);
    result_.weight_reasons.push_back(std::move(settled.reason));
  }
  const std::vector<Choice> caches = CacheChoices();
  PlaceCaches(caches);
  result_.remarks = layers_.remarks;
  for (PlacementRemark& remark : rules_.Remarks()) result_.remarks.push_back(std::move(remark));
  if ((options_.cpu_moe || options_.n_cpu_moe > 0) && model_.hyperparameters().n_expert == 0) {
    Remark(
        PlacementRemarkKind::kFlagWithoutEffect,
        absl::StrCat(options_.cpu_moe ? "--cpu-moe" : "--n-cpu-moe", ": the model has no experts"));
  }
  RemarkRefusals();
  RemarkCaches(caches);
  RemarkIdleDevices();
  RemarkMemory();
  result_.layer_devices = std::move(layers_.layers);
  result_.input_device = layers_.input_device;
  return std::move(result_);
}

}  // namespace

absl::StatusOr<ModelPlacement> PlaceModel(const Model& model, absl::Span<Device* const> devices,
                                          const PlacementOptions& options) {
  RETURN_IF_ERROR(CheckDevices(devices));
  if (options.n_cpu_moe < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-cpu-moe: ", options.n_cpu_moe, " layers, want 0 or more"));
  }
  ASSIGN_OR_RETURN(LayerAssignment layers,
                   AssignLayers(devices, model.hyperparameters().n_layer, options));
  ASSIGN_OR_RETURN(OverrideRules rules, OverrideRules::Compile(options.overrides, devices));
  ASSIGN_OR_RETURN(LeafConsumers consumers,
                   LeafConsumers::Create(model, options.key_type, options.value_type));
  return Placer(model, devices, options, std::move(layers), std::move(rules), std::move(consumers))
      .Place();
}

int32_t HomeDevice(const Weight& weight, const ModelPlacement& placement) {
  if (weight.role == WeightRole::kTokenEmbedding) return placement.input_device;
  return weight.layer < 0 ? placement.layer_devices.back() : placement.layer_devices[weight.layer];
}

std::vector<int64_t> WeightBytesByDevice(const Model& model, absl::Span<const int32_t> weights,
                                         size_t device_count) {
  std::vector<int64_t> bytes(device_count, 0);
  std::set<std::pair<int32_t, const GgufTensor*>> counted;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const GgufTensor* tensor : model.weight_table().TensorsOf(model.weights()[i])) {
      if (counted.emplace(weights[i], tensor).second) bytes[weights[i]] += tensor->bytes;
    }
  }
  return bytes;
}

}  // namespace weft
