// A plan cut into the parts of several processes.
//
// A part holds the nodes on devices of its process, in the plan's order, and lies in the same
// memory. Copies between devices of two processes become a `receive` in the one and a send behind
// the split that computes the tensor in the other. Sends wait for nothing and every receive comes
// after its send in the plan's order, so processes never wait for each other in a circle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/scheduler/execution_plan.h"

namespace weft {

// A tensor that one process hands to another in each step.
struct FleetEdge {
  std::string tensor;  // name of the node, for people
  int32_t source = 0;  // processes
  int32_t destination = 0;
  int64_t bytes = 0;
  friend bool operator==(const FleetEdge&, const FleetEdge&) = default;
};

struct PlanPart {
  std::vector<int32_t> devices;     // positions in the plan
  ScheduledGraph scheduled;         // its devices are positions in the plan
  std::vector<MemoryPlace> places;  // by node of that
  std::vector<int32_t> inputs;      // by input id of the part: the id in the caller's graph
  std::vector<int32_t> outputs;     // by output of the part: the position among the plan's
};

struct PlanParts {
  std::vector<PlanPart> parts;   // by process
  std::vector<FleetEdge> edges;  // by edge id
};

// process_of[d] is the process of device d, -1: of none. Errors: INVALID_ARGUMENT for a node on a
// device of no process, for one that reads memory of another process, and for a weight that would
// be copied between processes, by name.
absl::StatusOr<PlanParts> CutPlan(const PlanContext& context, const ExecutionPlan& plan,
                                  absl::Span<const int32_t> process_of, int32_t processes);

}  // namespace weft
