// Pass 2: assignments spread along the order of nodes. Accelerators first, both ways, so that a
// node between two of theirs never falls to a processor unless something forces it. From one
// machine to the next they spread between layers only, so that what crosses is one tensor.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class Expand final : public Pass {
 public:
  std::string_view name() const override { return "expand"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    const std::vector<Assignment> before = plan.assignments;
    const LayerHosts hosts(context, plan);
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
      if (context.Enabled(sweep.rule)) Spread(context, hosts, plan, sweep.forward, sweep.all);
    }
    return plan.assignments != before;
  }

 private:
  // The machines on which something of a layer is fixed before the sweeps.
  class LayerHosts {
   public:
    LayerHosts(const PlanContext& context, const Plan& plan) : context_(context) {
      if (!context.Enabled(Rule::kLayerHost)) return;
      for (int32_t i = 0; i < context.graph().size(); ++i) {
        const NodeId id{i};
        const int32_t device = plan.assignments[i].device;
        if (device == kNoDevice || !context.graph().Executes(id)) continue;
        held_.emplace(context.graph().node(id).layer, context.HostIndex(device));
        layers_.insert(context.graph().node(id).layer);
      }
    }

    // True too for nodes of no layer, and of layers of which nothing is fixed.
    bool Admit(int32_t device, NodeId id) const {
      const int32_t layer = context_.graph().node(id).layer;
      return layer < 0 || !layers_.contains(layer) ||
             held_.contains(std::pair(layer, context_.HostIndex(device)));
    }

   private:
    const PlanContext& context_;
    absl::flat_hash_set<int32_t> layers_;
    absl::flat_hash_set<std::pair<int32_t, int32_t>> held_;  // layer and machine
  };

  // Until all may spread, a processor stops a sweep, and so does a device outside its batches.
  static bool Stops(const PlanContext& context, int32_t d) {
    return (context.IsHostSide(d) && context.Enabled(Rule::kHostStops)) || !context.InBatch(d);
  }

  static void Spread(const PlanContext& context, const LayerHosts& hosts, Plan& plan, bool forward,
                     bool all) {
    const int32_t count = context.graph().size();
    int32_t current = kNoDevice;
    for (int32_t k = 0; k < count; ++k) {
      const NodeId id{forward ? k : count - 1 - k};
      if (!context.graph().Executes(id)) continue;
      Assignment& assignment = plan.assignments[Index(id)];
      if (assignment.device != kNoDevice) {
        current = !all && Stops(context, assignment.device) ? kNoDevice : assignment.device;
      } else if (current != kNoDevice && hosts.Admit(current, id) &&
                 context.MayRun(plan, current, id)) {
        assignment = {current, Cause::kSpread, -1};
      }
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeExpandPass() { return std::make_unique<Expand>(); }

}  // namespace weft
