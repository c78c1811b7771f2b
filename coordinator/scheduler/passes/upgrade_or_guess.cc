// Pass 3, one sweep in node order (decision 21): a node moves to a better device with the same
// memory, and a node that nothing has placed goes where most of its sources can be read.
#include <algorithm>

#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class UpgradeOrGuess final : public Pass {
 public:
  std::string_view name() const override { return "upgrade-or-guess"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    const std::vector<Assignment> before = plan.assignments;
    for (int32_t i = 0; i < context.graph().size(); ++i) {
      const NodeId id{i};
      if (!context.graph().Executes(id)) continue;
      const Assignment& assignment = plan.assignments[i];
      if (assignment.device == kNoDevice) {
        if (context.Enabled(Rule::kGuess)) Guess(context, plan, id);
      } else if (assignment.cause != Cause::kPin && context.Enabled(Rule::kUpgrade)) {
        Upgrade(context, plan, id);
      }
    }
    return plan.assignments != before;
  }

 private:
  static void Upgrade(const PlanContext& context, Plan& plan, NodeId id) {
    Assignment& assignment = plan.assignments[Index(id)];
    const BufferType* type = &context.device(assignment.device).buffer_type();
    for (int32_t d = 0; d < assignment.device; ++d) {
      if (&context.device(d).buffer_type() != type || !context.InBatch(d)) continue;
      if (!context.MayRun(plan, d, id)) continue;
      const auto& sources = context.graph().node(id).sources;
      const bool reads_all = std::all_of(sources.begin(), sources.end(), [&](NodeId source) {
        // The host fills an input on every device that reads it.
        return context.IsHostFilled(source) || context.Reads(plan, d, source);
      });
      if (!reads_all) continue;
      assignment = {d, Cause::kUpgrade, -1};
      return;
    }
  }

  static void Guess(const PlanContext& context, Plan& plan, NodeId id) {
    const int32_t home = context.Enabled(Rule::kTieHost) ? SourceHost(context, plan, id) : -1;
    int32_t best = kNoDevice;
    int64_t best_score = -1;
    for (int32_t d = 0; d < context.device_count(); ++d) {
      if (!context.MayRun(plan, d, id)) continue;
      int64_t count = 0;
      for (const NodeId source : context.graph().node(id).sources) {
        count += !context.IsHostFilled(source) && context.Reads(plan, d, source) ? 1 : 0;
      }
      // Sources, then a device that takes this batch, then the machine that holds the sources.
      const int64_t score = 4 * count + (context.InBatch(d) ? 2 : 0) +
                            (home >= 0 && context.HostIndex(d) == home ? 1 : 0);
      if (score <= best_score) continue;
      best = d;
      best_score = score;
    }
    if (best != kNoDevice) plan.assignments[Index(id)] = {best, Cause::kBest, -1};
  }

  // The machine that holds most of the sources that do not come from the host's inputs, -1: none.
  static int32_t SourceHost(const PlanContext& context, const Plan& plan, NodeId id) {
    std::vector<int32_t> hosts;
    for (const NodeId source : context.graph().node(id).sources) {
      if (context.IsHostFilled(source)) continue;
      const int32_t d = plan.assignments[Index(context.graph().Root(source))].device;
      if (d != kNoDevice) hosts.push_back(context.HostIndex(d));
    }
    int32_t best = -1;
    int64_t most = 0;
    for (const int32_t host : hosts) {
      const int64_t count = std::count(hosts.begin(), hosts.end(), host);
      if (count <= most) continue;
      best = host;
      most = count;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeUpgradeOrGuessPass() { return std::make_unique<UpgradeOrGuess>(); }

}  // namespace weft
