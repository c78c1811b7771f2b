// A model that runs somewhere, as the engine sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

// The engine's thread alone uses it.
class ServingSession {
 public:
  virtual ~ServingSession() = default;
  virtual ModelRunner& runner() = 0;
  // Why its workers can do nothing more, if that is so.
  virtual absl::Status lost() = 0;
  // Why its workers will be gone soon, if that is so: what runs may end, nothing shall begin.
  virtual absl::Status leaving() { return absl::OkStatus(); }
  // Parts of the model that follow each other, on devices of their own.
  virtual int64_t stages() const = 0;
  // By process; none where all runs here.
  virtual std::vector<ProcessTimes> processes() { return {}; }
  virtual std::vector<TransportBytes> transports() { return {}; }
};

// Opens it: at first, and again after each loss.
using OpenServingSession = std::function<absl::StatusOr<std::unique_ptr<ServingSession>>()>;

}  // namespace weft
