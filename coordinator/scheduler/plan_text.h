// A plan as stable text: for golden files that people review, and for dumps between passes.
#pragma once

#include <string>

#include "coordinator/scheduler/execution_plan.h"

namespace weft {

// One line per split with what it copies, one per executed node with its cause, then memory and
// counts. No addresses, no times: equal plans give equal text.
std::string PlanText(const PlanContext& context, const ExecutionPlan& plan);

// The assignments alone, one line per node that has changed against `before` (empty: all).
std::string AssignmentText(const PlanContext& context, const std::vector<Assignment>& before,
                           const std::vector<Assignment>& after);

// What a plan costs in communication, per step.
struct PlanTraffic {
  int64_t splits = 0;
  int64_t copies = 0;  // replicas that are copied, inputs not counted
  int64_t copied_bytes = 0;
  int64_t staged_bytes = 0;  // of these, weights; experts count in full
  int64_t input_bytes = 0;   // filled by the host, all devices together
  // Hosts that take part: each gets one execute and sends one reply per step (decision 3).
  int64_t processes = 0;
};
PlanTraffic MeasureTraffic(const PlanContext& context, const ExecutionPlan& plan);

}  // namespace weft
