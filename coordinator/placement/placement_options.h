// What a user may say about which device holds what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/dtype.h"

namespace weft {

enum class SplitMode : uint8_t {
  kNone,    // everything on one device
  kLayer,   // consecutive layers on consecutive devices
  kTensor,  // every layer cut over the devices of a group
};

// "Weights whose name matches go to that device."
struct OverrideRule {
  std::string pattern;  // regular expression, searched in the weight's name
  std::string device;   // a device's name, or "cpu": the CPU of the host of the layer's device
};

struct PlacementOptions {
  int64_t n_gpu_layers = -1;  // last layers on layer devices, output layer included; < 0: all
  std::string main_device;    // name, or position among the layer devices; empty: the first
  // Share of each layer device, in order; missing ones are 0. Empty: by free memory.
  std::vector<double> tensor_split;
  SplitMode split_mode = SplitMode::kLayer;
  // Of SplitMode::kTensor: devices of a group that computes each layer together, and groups, each
  // with layers of its own. 0: what the other leaves, else one group.
  int64_t tensor_ranks = 0;
  int64_t layer_groups = 0;
  std::vector<OverrideRule> overrides;  // the first that matches wins
  bool cpu_moe = false;                 // experts of all layers on the host's CPU
  int64_t n_cpu_moe = 0;                // experts of that many first layers on the host's CPU
  bool kv_offload = true;               // false: caches in host memory
  // Of the caches, for devices that do not take every type.
  DType key_type = DType::kF16;
  DType value_type = DType::kF16;
};

}  // namespace weft
