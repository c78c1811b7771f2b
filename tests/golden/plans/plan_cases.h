// The golden plans: models of tests/data/models on six lists of devices. Each case is a file here,
// which people review like code.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/placement_options.h"
#include "coordinator/scheduler/execution_plan.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {

struct PlanPhase {
  int64_t tokens = 1;  // of a step; one of them wants logits
  // What the plan of this phase must come to; -1: not said.
  int64_t splits = -1;
  int64_t processes = 1;
  int64_t candidates = 0;  // in place of logits, and as many changed ids
};

struct PlanCase {
  std::string name;   // "llama-gqa.gpu": the file is NAME.txt
  std::string model;  // folder of tests/data/models
  std::vector<RigDevice> devices;
  PlacementOptions placement;
  std::vector<PlanPhase> phases;
  PlanOptions options;
};
std::vector<PlanCase> PlanCases();
// For gtest.
void PrintTo(const PlanCase& plan_case, std::ostream* out);

// The device lists of the cases: one GPU beside the coordinator's CPU; a GPU and a CPU on each of
// two workers, and the coordinator.
std::vector<RigDevice> OneGpu();
std::vector<RigDevice> TwoWorkers();

// Aborts if there is none of that name.
const PlanCase& FindPlanCase(const std::vector<PlanCase>& cases, const std::string& name);

using SeePlan = std::function<void(const PlanPhase&, const PlanContext&, const ExecutionPlan&)>;
// Plans one phase of a model.
absl::Status PlanOnePhase(const Model& model, const PlacedDevices& placed, const PlanPhase& phase,
                          const PlanOptions& options, const SeePlan& see);

// The plans of all phases, a heading before each. `see` gets each plan; it may be empty.
absl::StatusOr<std::string> PlanCaseText(const PlanCase& plan_case, const SeePlan& see);

}  // namespace weft
