// Which device holds each weight and each cache of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/placement/placement_remark.h"

namespace weft {

// Devices are positions in the list that PlaceModel got.
struct ModelPlacement {
  std::vector<int32_t> weights;             // by weight id
  std::vector<std::string> weight_reasons;  // "layer 3 of 32 on w0.gpu0 (-ngl 20)"
  std::vector<int32_t> caches;              // by cache id
  std::vector<std::string> cache_reasons;   // "with layer 3", "--no-kv-offload"
  std::vector<int32_t> layer_devices;       // n_layer + 1: the last is the output layer
  int32_t input_device = 0;                 // token embedding and token ids
  // By layer: where its attention must run, because its caches lie in host memory that a device of
  // the list does not read and would get a copy of; -1: wherever the scheduler likes.
  std::vector<int32_t> attention_pins;
  // What a user should know: rules that matched nothing, types that a device refuses, caches in
  // host memory, devices without a layer, weights beyond a device's free memory.
  std::vector<PlacementRemark> remarks;
};

// Places by name and layer (spec F.8 and F.9, decisions 4 and 26). `devices` is the scheduler's
// list: GPUs, accelerators, CPUs of workers, and last the coordinator's CPU. A weight goes where
// the first of these says: a rule, --cpu-moe or --n-cpu-moe, its layer; and from there to the CPU
// of that host if the device refuses an operation that reads it. Caches go with their layer, or
// to the CPU of its host if the user says so or the device refuses what works with them. A pure
// function of its arguments. Errors: INVALID_ARGUMENT naming the flag or rule.
absl::StatusOr<ModelPlacement> PlaceModel(const Model& model, absl::Span<Device* const> devices,
                                          const PlacementOptions& options);

// The device of the weight's layer: of the token embedding the input layer's, of what belongs to no
// layer the output layer's.
int32_t HomeDevice(const Weight& weight, const ModelPlacement& placement);

// Bytes of weights by device; a tensor that weights of one device share counts once.
std::vector<int64_t> WeightBytesByDevice(const Model& model, absl::Span<const int32_t> weights,
                                         size_t device_count);

}  // namespace weft
