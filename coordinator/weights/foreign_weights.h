// Weights on devices of other processes, as the weight loader asks for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "coordinator/models/model.h"
#include "coordinator/weights/weight_slice.h"

namespace weft {

// Called with bytes done and in all; returning false cancels the load.
using LoadProgress = std::function<bool(int64_t done, int64_t total)>;

// One weight, or a part of one, that is to be there.
struct ForeignWeight {
  int32_t id = 0;      // of the binding
  int32_t weight = 0;  // of the model
  Device* device = nullptr;
  TensorLayout layout;
  std::vector<FileRun> runs;  // its bytes, one behind the other
};

struct ForeignResult {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<SlotBinding> bindings;  // in the order of the weights asked for
};

class ForeignWeights {
 public:
  virtual ~ForeignWeights() = default;
  // Whether that device is not of this process.
  virtual bool Holds(const Device& device) const = 0;
  // Loads all of them; returns when their bytes are there. Errors name weight and worker;
  // CANCELLED.
  virtual absl::StatusOr<ForeignResult> Load(const Model& model,
                                             absl::Span<const ForeignWeight> weights,
                                             const LoadProgress& progress) = 0;
};

}  // namespace weft
