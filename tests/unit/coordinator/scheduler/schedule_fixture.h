// Plans that are made, checked, compiled and run, and compared with the oracle.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/random.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// What the plans of a test came to; so that it can tell that it tested something.
struct ScheduleStatistics {
  std::set<Cause> causes;  // that placed something
  int64_t plans = 0;
  int64_t splits = 0;
  int64_t staged = 0;     // replicas of weights
  int64_t experts = 0;    // of these, of used experts only
  int64_t chunks = 0;     // beyond the first of a pool
  int64_t pipelined = 0;  // plans whose steps overlap
  int64_t fused = 0;      // plain nodes that became part of a fused one
  int64_t resolved = 0;   // fused nodes that became plain ones
  int64_t observed = 0;   // tensors that an observer saw
  int64_t aborted = 0;    // steps that it ended
  int64_t fleets = 0;     // plans that ran once more in a process per host
  int64_t edges = 0;      // tensors that their processes hand to each other in a step
  int64_t refused = 0;    // plans that copy weights between hosts, which fleets refuse
  // The same by reason (weight_crossings.h); a plan may have several.
  std::map<std::string, int64_t> reasons;
};

// Plans `input` twice, with unrelated questions in between, and checks that the plans are equal and
// without fault, down to a program that VerifyProgram accepts.
void CheckPlan(Random& random, const PlanInput& input, ScheduleStatistics& statistics);

// The same, and runs `steps` steps on the devices, several in flight, whose inputs differ and are
// overwritten as soon as they are launched. Outputs and what is observed are bit for bit the
// oracle's. Ends a step by the observer at last. Then once more with a process for each host, where
// there are several.
void CheckPlanAgainstOracle(Random& random, const PlanInput& input, int steps,
                            ScheduleStatistics& statistics);

}  // namespace weft
