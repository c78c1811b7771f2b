// Weights that a plan copies from machine to machine, which a fleet refuses, and why it does so:
// told from the plan's input and the devices' own answers, not from what the scheduler says.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

// The reason of a crossing that has none: the passes are at fault.
inline constexpr std::string_view kNoReason = "no reason";

// As it is, or by its plain form.
bool RunsSomehow(const Device& device, const Graph& graph, NodeId id);

// The reasons of all crossings, empty if no weight crosses. Besides kNoReason, in this order of
// precedence, where "the reader" means the nodes that make or change its tensor:
//   "the rule is off"
//   "the weight has no place"        the plan chose one beside another reader
//   "the reader is pinned"
//   "it writes elsewhere"            into memory that has a place on another machine
//   "weights of two machines"        are read by the reader, and another one decided
//   "refused beside the weight"      by every device of that machine
std::set<std::string> WeightCrossings(const PlanContext& context, const Plan& plan);

// Has a weight that is read where this tensor is made or changed a place on another machine?
bool HasWeightElsewhere(const PlanContext& context, const Plan& plan, NodeId id, int32_t device);

}  // namespace weft
