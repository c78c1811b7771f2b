// What ranks send each other in a step, from its plan.
#pragma once

#include "absl/types/span.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

// Fills phase.collectives and phase.rank_traffic. `context` is of the graph rank by rank, whose
// devices are positions in the report.
void ExplainCollectives(const PlanContext& context, absl::Span<const ExplainGroup> groups,
                        ExplainPhase& phase);

}  // namespace weft
