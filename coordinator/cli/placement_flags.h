// The flags that say which device holds and computes what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/placement/device_batch.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/scheduler/plan_input.h"

namespace CLI {
class App;
}

namespace weft {

// As typed.
struct PlacementFlags {
  std::string n_gpu_layers = "all";
  std::string main_device;
  std::string tensor_split;
  std::optional<std::string> split_mode;  // "layer" unless said
  std::string layout;
  std::string wire_type = "f32";
  std::string all_reduce = "auto";
  std::string overlap = "auto";
  std::vector<std::string> overrides;
  bool cpu_moe = false;
  int64_t n_cpu_moe = 0;
  bool no_kv_offload = false;
  bool no_op_offload = false;
  int64_t op_offload_batch = 0;
  std::string device_batch;
  std::vector<std::string> accelerators;
};

// What they mean.
struct PlacementRequest {
  PlacementOptions placement;
  PlanOptions plan;  // how the flags change it; the rest is the command's
  std::vector<DeviceBatchRule> device_batches;
  bool blas = false;  // use the BLAS accelerator
};

void AddPlacementFlags(CLI::App& command, PlacementFlags& flags);

// Errors: INVALID_ARGUMENT naming the flag and what it takes. Device names are checked where the
// devices are known: PlaceModel and ResolveDeviceBatches.
absl::StatusOr<PlacementRequest> ParsePlacementFlags(const PlacementFlags& flags);

// Rules of a comma list of REGEX=DEVICE. Commas inside brackets belong to an expression, and the
// device starts after the last '='. Errors: INVALID_ARGUMENT naming the rule.
absl::StatusOr<std::vector<OverrideRule>> ParseOverrides(std::string_view text);

}  // namespace weft
