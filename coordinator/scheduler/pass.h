// One step of placing a graph: a unit with one job (spec B.4).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // True if it changed the plan. Errors name the node at fault.
  virtual absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const = 0;
};

}  // namespace weft
