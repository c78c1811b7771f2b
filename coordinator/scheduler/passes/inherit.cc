// Pass 4: every node and source gets a device. A node is settled before its sources, so that an
// open one never hands "none" on (spec B.4, pass 4).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class Inherit final : public Pass {
 public:
  std::string_view name() const override { return "inherit"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    const std::vector<Assignment> before = plan.assignments;
    const Graph& graph = context.graph();
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.Executes(NodeId{i})) continue;
      RETURN_IF_ERROR(Settle(context, plan, NodeId{i}));
      for (const NodeId source : graph.node(NodeId{i}).sources) {
        // What a node changes is where that node is in any case.
        const bool changed = graph.Root(source) == graph.Root(NodeId{i});
        if (!changed && !context.Enabled(Rule::kInherit)) continue;
        Assignment& root = plan.assignments[Index(graph.Root(source))];
        if (root.device == kNoDevice) root = {plan.assignments[i].device, Cause::kInheritUser, -1};
      }
    }
    for (int32_t i = 0; i < graph.size(); ++i) Rest(context, plan, NodeId{i});
    return plan.assignments != before;
  }

 private:
  static absl::Status Settle(const PlanContext& context, Plan& plan, NodeId id) {
    Assignment& assignment = plan.assignments[Index(id)];
    if (assignment.device != kNoDevice) return absl::OkStatus();
    const NodeId root = context.graph().Root(id);
    const int32_t home = plan.assignments[Index(root)].device;
    if (root != id && home != kNoDevice && context.MayRun(plan, home, id)) {
      assignment = {home, Cause::kInheritView, -1};
      return absl::OkStatus();
    }
    for (int32_t d = 0; d < context.device_count(); ++d) {
      if (!context.MayRun(plan, d, id)) continue;
      assignment = {d, Cause::kFirst, -1};
      return absl::OkStatus();
    }
    std::vector<std::string> reasons;
    for (int32_t d = 0; d < context.device_count() && reasons.size() < 4; ++d) {
      reasons.push_back(absl::StrCat(context.device(d).name(), ": ", context.WhyNot(plan, d, id)));
    }
    return absl::UnimplementedError(absl::StrCat("no device runs ", NodeText(context.graph(), id),
                                                 " (", absl::StrJoin(reasons, "; "), ")"));
  }

  // Views, and leafs that nobody reads.
  static void Rest(const PlanContext& context, Plan& plan, NodeId id) {
    Assignment& assignment = plan.assignments[Index(id)];
    if (assignment.device != kNoDevice) return;
    const NodeId root = context.graph().Root(id);
    if (root != id) {
      assignment = {plan.assignments[Index(root)].device, Cause::kInheritView, -1};
    } else {
      assignment = {context.last_device(), Cause::kFirst, -1};
    }
  }
};

}  // namespace

std::unique_ptr<Pass> MakeInheritPass() { return std::make_unique<Inherit>(); }

}  // namespace weft
