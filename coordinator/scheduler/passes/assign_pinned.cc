// Pass 1: what is fixed by the user, by bound memory, by weights and by the host's inputs.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/passes/passes.h"

namespace weft {
namespace {

class AssignPinned final : public Pass {
 public:
  std::string_view name() const override { return "assign-pinned"; }

  absl::StatusOr<bool> Run(const PlanContext& context, Plan& plan) const override {
    const std::vector<Assignment> before = plan.assignments;
    RETURN_IF_ERROR(Pins(context, plan));
    const Graph& graph = context.graph();
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (graph.IsLeaf(NodeId{i})) RETURN_IF_ERROR(Leaf(context, plan, NodeId{i}));
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.IsLeaf(NodeId{i})) RETURN_IF_ERROR(Computed(context, plan, NodeId{i}));
    }
    return plan.assignments != before;
  }

 private:
  static absl::Status Pins(const PlanContext& context, Plan& plan) {
    for (const Pin& pin : context.input().pins) {
      RETURN_IF_ERROR(CheckPin(context, plan, pin));
      plan.assignments[Index(pin.node)] = {pin.device, Cause::kPin, -1};
    }
    return absl::OkStatus();
  }

  static absl::Status CheckPin(const PlanContext& context, const Plan& plan, const Pin& pin) {
    const std::string text = absl::StrCat(NodeText(context.graph(), pin.node), " is pinned to ",
                                          context.device(pin.device).name());
    const absl::Status refusal = context.Refusal(pin.device, pin.node);
    if (!refusal.ok()) return absl::UnimplementedError(absl::StrCat(text, ": ", refusal.message()));
    const int32_t other = plan.assignments[Index(pin.node)].device;
    if (other != kNoDevice && other != pin.device) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, " and to ", context.device(other).name()));
    }
    const BufferType* type = context.Place(pin.node).type;
    if (context.graph().IsLeaf(pin.node) && type != nullptr &&
        context.OwnerOf(*type) != pin.device) {
      return absl::InvalidArgumentError(absl::StrCat(text, " but lies in ", type->name()));
    }
    return absl::OkStatus();
  }

  static absl::Status Leaf(const PlanContext& context, Plan& plan, NodeId id) {
    Assignment& assignment = plan.assignments[Index(id)];
    const BufferType* type = context.Place(id).type;
    if (type != nullptr) {
      const int32_t owner = context.OwnerOf(*type);
      if (owner != kNoDevice) {
        assignment = {owner, Cause::kDestination, -1};
        return absl::OkStatus();
      }
      if (!context.IsWeight(id)) {
        return absl::InvalidArgumentError(absl::StrCat(NodeText(context.graph(), id), " lies in ",
                                                       type->name(), ", which none of the plan's ",
                                                       context.device_count(), " devices reads"));
      }
      assignment = {context.last_device(), Cause::kHostBound, -1};
      return absl::OkStatus();
    }
    if (assignment.device == kNoDevice && context.IsHostFilled(id) &&
        context.Enabled(Rule::kInput)) {
      assignment = {context.last_device(), Cause::kInput, -1};
    }
    return absl::OkStatus();
  }

  static absl::Status Computed(const PlanContext& context, Plan& plan, NodeId id) {
    Assignment& assignment = plan.assignments[Index(id)];
    if (assignment.device != kNoDevice) return absl::OkStatus();
    const NodeId root = context.graph().Root(id);
    if (root != id && context.Enabled(Rule::kViewSource)) {
      return InBoundMemory(context, plan, id, root);
    }
    if (context.graph().Executes(id) && context.Enabled(Rule::kWeight)) {
      ByWeight(context, plan, id);
    }
    return absl::OkStatus();
  }

  // A view of a leaf, or an op that writes one: where that memory is.
  static absl::Status InBoundMemory(const PlanContext& context, Plan& plan, NodeId id,
                                    NodeId root) {
    const Graph& graph = context.graph();
    const BufferType* type = context.MemoryType(plan, root);
    if (!graph.IsLeaf(root) || type == nullptr) return absl::OkStatus();
    if (!graph.Executes(id)) {
      plan.assignments[Index(id)] = {plan.assignments[Index(root)].device, Cause::kViewSource, -1};
      return absl::OkStatus();
    }
    const int32_t d = FirstReader(context, plan, *type, id);
    if (d == kNoDevice) return NobodyRuns(context, plan, *type, id);
    plan.assignments[Index(id)] = {d, Cause::kViewSource, -1};
    PreferBatch(context, plan, id, 0);
    return absl::OkStatus();
  }

  static absl::Status NobodyRuns(const PlanContext& context, const Plan& plan,
                                 const BufferType& type, NodeId id) {
    std::vector<std::string> reasons;
    for (int32_t d = 0; d < context.device_count() && reasons.size() < 4; ++d) {
      if (!context.ReadsType(d, type)) continue;
      reasons.push_back(absl::StrCat(context.device(d).name(), ": ", context.WhyNot(plan, d, id)));
    }
    return absl::UnimplementedError(
        absl::StrCat(NodeText(context.graph(), id), " works in ", type.name(),
                     ", and no device that reads it runs it (", absl::StrJoin(reasons, "; "), ")"));
  }

  // The first device that reads that memory and runs the node (`backend_of_buffer`, spec B.3).
  static int32_t FirstReader(const PlanContext& context, const Plan& plan, const BufferType& type,
                             NodeId id) {
    for (int32_t d = 0; d < context.device_count(); ++d) {
      if (context.ReadsType(d, type) && context.MayRun(plan, d, id)) return d;
    }
    return kNoDevice;
  }

  static bool IsExempt(const PlanContext& context, Op op) {
    return (op == Op::kRope && context.Enabled(Rule::kExemptRope)) ||
           (op == Op::kPagedAttention && context.Enabled(Rule::kExemptAttention));
  }

  static void ByWeight(const PlanContext& context, Plan& plan, NodeId id) {
    const Node& node = context.graph().node(id);
    if (IsExempt(context, node.op)) return;
    for (size_t k = 0; k < node.sources.size(); ++k) {
      const NodeId root = context.graph().Root(node.sources[k]);
      if (!context.graph().IsLeaf(root) || context.Place(root).usage != BufferUsage::kWeights) {
        continue;
      }
      const BufferType* type = context.MemoryType(plan, root);
      if (type == nullptr) continue;
      const auto source = static_cast<int32_t>(k);
      const int32_t reader = FirstReader(context, plan, *type, id);
      const int32_t wanting = Offload(context, plan, *type, id, reader);
      Assignment& assignment = plan.assignments[Index(id)];
      if (wanting != kNoDevice) {
        assignment = {wanting, Cause::kOffload, source};
      } else if (reader != kNoDevice) {
        assignment = {reader, Cause::kWeight, source};
        PreferBatch(context, plan, id, source);
      }
      return;  // the first weight decides, also when it decides nothing
    }
  }

  // The first GPU beside that host memory which wants the node all the same.
  static int32_t Offload(const PlanContext& context, const Plan& plan, const BufferType& type,
                         NodeId id, int32_t reader) {
    if (!context.input().options.op_offload || !context.Enabled(Rule::kOffload)) return kNoDevice;
    if (!type.is_host() || (reader != kNoDevice && !context.IsHostSide(reader))) return kNoDevice;
    const int32_t end = reader == kNoDevice ? context.device_count() : reader;
    for (int32_t d = 0; d < end; ++d) {
      if (context.IsHostSide(d) || !context.InBatch(d)) continue;
      if (context.device(d).host() != type.device().host()) continue;
      if (context.MayRun(plan, d, id) && context.Wants(d, id)) return d;
    }
    return kNoDevice;
  }

  // Where the assigned device does not take this batch: the first that does and reads every bound
  // tensor of the node. Says so where there is none.
  static void PreferBatch(const PlanContext& context, Plan& plan, NodeId id, int32_t source) {
    Assignment& assignment = plan.assignments[Index(id)];
    if (context.InBatch(assignment.device)) return;
    std::string reason;
    for (int32_t d = 0; d < context.device_count(); ++d) {
      if (!context.InBatch(d) || !context.Supports(d, id)) continue;
      const BufferType* unread = UnreadType(context, plan, d, id);
      if (unread != nullptr) {
        if (reason.empty()) reason = std::string(context.device(d).Supports(*unread).message());
      } else if (context.MayRun(plan, d, id)) {
        assignment = {d, Cause::kBatch, source};
        return;
      }
    }
    std::string remark = absl::StrCat(
        context.device(assignment.device).name(), " runs batches of ", context.input().batch,
        " that it does not ask for: ", reason.empty() ? "no other device takes them" : reason);
    for (const std::string& known : plan.remarks) {
      if (known == remark) return;
    }
    plan.remarks.push_back(std::move(remark));
  }

  // The memory of a weight or cache of the node that d cannot read, or null.
  static const BufferType* UnreadType(const PlanContext& context, const Plan& plan, int32_t d,
                                      NodeId id) {
    for (const NodeId source : context.graph().node(id).sources) {
      const NodeId root = context.graph().Root(source);
      if (!context.graph().IsLeaf(root) || context.IsHostFilled(root)) continue;
      const BufferType* type = context.MemoryType(plan, root);
      if (type != nullptr && !context.ReadsType(d, *type)) return type;
    }
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeAssignPinnedPass() { return std::make_unique<AssignPinned>(); }

}  // namespace weft
