// Brings a model's weights to workers: each takes what it sees in files, has cached or another
// worker has, and is sent the rest.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "coordinator/weights/foreign_weights.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_worker.h"

namespace weft {

class FleetWeights final : public ForeignWeights {
 public:
  // The link's workers outlive this and what it loads. `ignore_files`: as if no worker saw a file.
  FleetWeights(FleetLink& link, bool ignore_files, Logger& logger)
      : link_(link), ignore_files_(ignore_files), logger_(logger) {}

  bool Holds(const Device& device) const override;
  absl::StatusOr<ForeignResult> Load(const Model& model, absl::Span<const ForeignWeight> weights,
                                     const LoadProgress& progress) override;

 private:
  FleetLink& link_;
  const bool ignore_files_;
  Logger& logger_;
};

}  // namespace weft
