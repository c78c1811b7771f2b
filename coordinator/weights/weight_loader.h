// Brings a model's weights to a device: in place where the device can use the mapped file, else
// copied into its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "coordinator/models/model.h"

namespace weft {

// Called with bytes done and in all; returning false cancels the load.
using LoadProgress = std::function<bool(int64_t done, int64_t total)>;

// The buffers that hold the weights, and where each weight lies in them.
class LoadedWeights {
 public:
  // Reads every byte once, so that a slow disk shows here and not in the first token. `model` and
  // its file outlive this. Errors: RESOURCE_EXHAUSTED naming what did not fit; CANCELLED.
  static absl::StatusOr<std::unique_ptr<LoadedWeights>> Load(const Model& model, Device& device,
                                                             const LoadProgress& progress);

  // One binding per weight, by weight id.
  const std::vector<SlotBinding>& bindings() const { return bindings_; }
  int64_t bytes() const { return bytes_; }
  bool in_place() const { return in_place_; }

 private:
  LoadedWeights() = default;
  absl::Status MapInPlace(const Model& model, Device& device, const LoadProgress& progress);
  absl::Status CopyToDevice(const Model& model, Device& device, const LoadProgress& progress);
  // Allocates one weight, fills it from its tensors and binds it.
  absl::Status CopyWeight(const Model& model, Device& device, const Weight& weight, int32_t id,
                          const LoadProgress& progress, int64_t& done);

  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<SlotBinding> bindings_;
  int64_t bytes_ = 0;
  bool in_place_ = false;
};

}  // namespace weft
