// One planned graph as data for people.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

// Plans the context's graph. `layer_devices` is ModelPlacement's; `clock` may be null. Errors:
// those of MakeExecutionPlan.
absl::StatusOr<ExplainPhase> MakeExplainPhase(const std::string& name, const PlanContext& context,
                                              absl::Span<const int32_t> layer_devices,
                                              const Clock* clock);

}  // namespace weft
