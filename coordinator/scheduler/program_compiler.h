// Turns plans into programs: slots for what is bound, arenas for what is computed, a stream of
// commands per device, a program per process.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/program/program.h"
#include "coordinator/scheduler/execution_plan.h"
#include "coordinator/scheduler/plan_parts.h"

namespace weft {

// The program of the one process that holds all devices of the plan, by the same positions.
// Observed nodes carry their id in the caller's graph as tag. Errors: INTERNAL.
absl::StatusOr<Program> CompilePlan(const PlanContext& context, const ExecutionPlan& plan);

// What one process of several runs.
struct ProcessProgram {
  std::string host;
  // Its devices are those of the plan on that host, in the plan's order. Without streams where the
  // process has nothing to do.
  Program program;
  std::vector<int32_t> inputs;   // by its input id: the id in the caller's graph
  std::vector<int32_t> outputs;  // by its output: the position among the plan's outputs
};

// Messages of collectives in a step, and their bytes.
struct RankTraffic {
  int64_t messages = 0;
  int64_t bytes = 0;
  friend bool operator==(const RankTraffic&, const RankTraffic&) = default;
};

struct FleetProgram {
  std::vector<ProcessProgram> processes;  // by peer number
  std::vector<FleetEdge> edges;           // by edge id: one message each in every step
  int32_t output_count = 0;

  // Messages that process `from` sends to `to` in a step, and their bytes; without collectives.
  int64_t Messages(int32_t from, int32_t to) const;
  int64_t MessageBytes(int32_t from, int32_t to) const;
  // What ranks of process `from` send to those of `to`, which is another one.
  RankTraffic Ranks(int32_t from, int32_t to) const;
};

// A program for each of `hosts`, which are different: the process at position p holds the devices
// whose host it is, and has the peer number p. A tensor goes once to each host that reads it.
// Errors: INVALID_ARGUMENT for a device with work on none of the hosts, for a node that reads
// memory of another host, and for a weight that would be copied from host to host, by name.
absl::StatusOr<FleetProgram> CompileFleet(const PlanContext& context, const ExecutionPlan& plan,
                                          absl::Span<const std::string> hosts);

}  // namespace weft
