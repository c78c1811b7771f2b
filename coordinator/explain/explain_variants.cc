#include "coordinator/explain/explain_variants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

ExplainToggle OpOffload(const ExplainOptions& options) {
  ExplainToggle toggle;
  toggle.name = "op offload";
  toggle.choices = {{"on", [](ExplainOptions& o) { o.plan.op_offload = true; }},
                    {"off", [](ExplainOptions& o) { o.plan.op_offload = false; }}};
  toggle.given = options.plan.op_offload ? 0 : 1;
  return toggle;
}

ExplainToggle KvOffload(const ExplainOptions& options) {
  ExplainToggle toggle;
  toggle.name = "KV offload";
  toggle.choices = {{"on", [](ExplainOptions& o) { o.placement.kv_offload = true; }},
                    {"off", [](ExplainOptions& o) { o.placement.kv_offload = false; }}};
  toggle.given = options.placement.kv_offload ? 0 : 1;
  return toggle;
}

ExplainToggle Layers(const ExplainOptions& options, int64_t n_layer) {
  ExplainToggle toggle;
  toggle.name = "-ngl";
  const auto add = [&](std::string label, int64_t layers) {
    toggle.choices.push_back(
        {std::move(label), [layers](ExplainOptions& o) { o.placement.n_gpu_layers = layers; }});
  };
  add("all", -1);
  const int64_t given = options.placement.n_gpu_layers;
  const bool partly = given > 0 && given <= n_layer;
  if (partly) {
    add(absl::StrCat(given), given);
  } else if (n_layer > 1) {
    add(absl::StrCat(n_layer / 2), n_layer / 2);
  }
  add("0", 0);
  toggle.given = partly ? 1 : given == 0 ? static_cast<int32_t>(toggle.choices.size()) - 1 : 0;
  return toggle;
}

ExplainToggle Experts(const ExplainOptions& options) {
  ExplainToggle toggle;
  toggle.name = "experts";
  const auto add = [&](std::string label, bool cpu_moe, int64_t n_cpu_moe) {
    toggle.choices.push_back({std::move(label), [cpu_moe, n_cpu_moe](ExplainOptions& o) {
                                o.placement.cpu_moe = cpu_moe;
                                o.placement.n_cpu_moe = n_cpu_moe;
                              }});
  };
  add("with layer", false, 0);
  const int64_t given = options.placement.n_cpu_moe;
  if (given > 0) add(absl::StrCat("--n-cpu-moe ", given), false, given);
  add("--cpu-moe", true, 0);
  toggle.given = options.placement.cpu_moe ? static_cast<int32_t>(toggle.choices.size()) - 1
                                           : (given > 0 ? 1 : 0);
  return toggle;
}

ExplainToggle Overrides(const ExplainOptions& options) {
  ExplainToggle toggle;
  toggle.name = "-ot rules";
  toggle.choices = {{"on", [rules = options.placement.overrides](
                               ExplainOptions& o) { o.placement.overrides = rules; }},
                    {"off", [](ExplainOptions& o) { o.placement.overrides.clear(); }}};
  return toggle;
}

}  // namespace

std::vector<ExplainToggle> MakeExplainToggles(const Model& model, absl::Span<Device* const> devices,
                                              const ExplainOptions& options) {
  std::vector<ExplainToggle> toggles;
  const bool gpus = std::any_of(devices.begin(), devices.end(), [](const Device* device) {
    return device->kind() == DeviceKind::kGpu || device->kind() == DeviceKind::kMeta;
  });
  if (gpus) {
    toggles.push_back(Layers(options, model.hyperparameters().n_layer));
    toggles.push_back(OpOffload(options));
    toggles.push_back(KvOffload(options));
    if (model.hyperparameters().n_expert > 0) toggles.push_back(Experts(options));
  }
  if (!options.placement.overrides.empty()) toggles.push_back(Overrides(options));
  return toggles;
}

std::vector<ExplainOptions> CombineToggles(absl::Span<const ExplainToggle> toggles,
                                           const ExplainOptions& options) {
  std::vector<ExplainOptions> combinations = {options};
  for (const ExplainToggle& toggle : toggles) {
    std::vector<ExplainOptions> longer;
    for (const ExplainOptions& combination : combinations) {
      for (const ExplainChoice& choice : toggle.choices) {
        longer.push_back(combination);
        choice.apply(longer.back());
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

}  // namespace weft
