// Pass 2: assignments spread along the order of nodes. Accelerators first, both ways, so that a
// node between two of theirs never falls to a processor unless something forces it.
#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class Expand final : public Pass {
 public:
  std::string_view name() const override { return "expand"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    const std::vector<Assignment> before = plan.assignments;
    struct Sweep {
      Rule rule;
      bool forward;
      bool all;
    };
    constexpr Sweep kSweeps[] = {{Rule::kSweepForward, true, false},
                                 {Rule::kSweepBackward, false, false},
                                 {Rule::kSweepAllForward, true, true},
                                 {Rule::kSweepAllBackward, false, true}};
    for (const Sweep& sweep : kSweeps) {
      if (context.Enabled(sweep.rule)) Spread(context, plan, sweep.forward, sweep.all);
    }
    return plan.assignments != before;
  }

 private:
  // Until all may spread, a processor stops a sweep, and so does a device outside its batches.
  static bool Stops(const PlanContext& context, int32_t d) {
    return (context.IsHostSide(d) && context.Enabled(Rule::kHostStops)) || !context.InBatch(d);
  }

  static void Spread(const PlanContext& context, Plan& plan, bool forward, bool all) {
    const int32_t count = context.graph().size();
    int32_t current = kNoDevice;
    for (int32_t k = 0; k < count; ++k) {
      const NodeId id{forward ? k : count - 1 - k};
      if (!context.graph().Executes(id)) continue;
      Assignment& assignment = plan.assignments[Index(id)];
      if (assignment.device != kNoDevice) {
        current = !all && Stops(context, assignment.device) ? kNoDevice : assignment.device;
      } else if (current != kNoDevice && context.MayRun(plan, current, id)) {
        assignment = {current, Cause::kSpread, -1};
      }
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeExpandPass() { return std::make_unique<Expand>(); }

}  // namespace weft
