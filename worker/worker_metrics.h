// What a worker's probe port shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/device/device.h"
#include "worker/session/worker_meter.h"
#include "worker/weights/weight_cache.h"

namespace weft {

// What is so now.
struct WorkerState {
  int32_t sessions = 0;
  bool accepts_sessions = false;
  bool draining = false;
  int64_t buffer_bytes = 0;  // of sessions
  std::optional<double> certificate_days_left = {};
  std::optional<bool> joined = {};  // with --join
};

// Metrics in Prometheus' text format; names begin with weft_worker_. `cache` may be null. Listed in
// docs/serving.md.
std::string WorkerMetricsText(const WorkerState& state, const WorkerCounts& counts,
                              absl::Span<Device* const> devices, const WeightCache* cache);

// Every metric that a worker can have, whatever its flags: MetricList::Table().
std::string WorkerMetricsTable();

}  // namespace weft
