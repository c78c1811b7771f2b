#include "tests/unit/coordinator/scheduler/plan_rig.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

RigDevice OfKind(DeviceKind kind, std::string name, std::string host) {
  RigDevice device;
  device.options.kind = kind;
  device.options.name = std::move(name);
  device.options.host = std::move(host);
  return device;
}

}  // namespace

RigDevice Gpu(std::string name, std::string host) {
  RigDevice device = OfKind(DeviceKind::kGpu, std::move(name), std::move(host));
  device.options.capabilities.async = true;
  device.options.capabilities.events = true;
  return device;
}

RigDevice Cpu(std::string name, std::string host) {
  return OfKind(DeviceKind::kCpu, std::move(name), std::move(host));
}

RigDevice Accelerator(std::string name, std::string memory_of, std::string host) {
  RigDevice device = OfKind(DeviceKind::kAccelerator, std::move(name), std::move(host));
  device.memory_of = std::move(memory_of);
  return device;
}

std::function<Support(const Graph&, NodeId)> RefuseOps(std::vector<Op> ops) {
  return [ops = std::move(ops)](const Graph& graph, NodeId id) -> Support {
    const Op op = graph.node(id).op;
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("no kernel of ", AbslView(OpName(op))));
  };
}

PlanRig::PlanRig(const std::vector<RigDevice>& devices) : owned_(devices.size()) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].memory_of.empty()) owned_[i] = std::make_unique<NullDevice>(devices[i].options);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (owned_[i] != nullptr) continue;
    NullDeviceOptions options = devices[i].options;
    for (const auto& owner : owned_) {
      if (owner != nullptr && owner->name() == devices[i].memory_of) {
        options.shares_memory_of = owner.get();
      }
    }
    WEFT_CHECK(options.shares_memory_of != nullptr);
    owned_[i] = std::make_unique<NullDevice>(std::move(options));
  }
  for (const auto& device : owned_) input.devices.push_back(device.get());
}

NodeId PlanRig::Bound(LeafKind kind, std::string_view name, const Extents& ne, DType dtype,
                      const LeafPlace& place) {
  const NodeId id = g.Leaf(kind, next_id_[static_cast<size_t>(kind)]++, dtype, ne, name);
  places_.resize(static_cast<size_t>(g.graph().size()));
  places_[Index(id)] = place;
  return id;
}

NodeId PlanRig::Weight(std::string_view name, const Extents& ne, int32_t device, DType dtype) {
  return Bound(LeafKind::kWeight, name, ne, dtype,
               {&input.devices[device]->buffer_type(), BufferUsage::kWeights});
}

NodeId PlanRig::WeightIn(std::string_view name, const Extents& ne, const BufferType& type) {
  return Bound(LeafKind::kWeight, name, ne, DType::kF32, {&type, BufferUsage::kWeights});
}

NodeId PlanRig::Cache(std::string_view name, const Extents& ne, int32_t device) {
  return Bound(LeafKind::kCache, name, ne, DType::kF32,
               {&input.devices[device]->buffer_type(), BufferUsage::kAny});
}

NodeId PlanRig::Input(std::string_view name, const Extents& ne, DType dtype) {
  return Bound(LeafKind::kInput, name, ne, dtype, {});
}

NodeId PlanRig::Table(std::string_view name, const Extents& ne) {
  return Bound(LeafKind::kPageTable, name, ne, DType::kI32, {});
}

NodeId PlanRig::Free(std::string_view name, const Extents& ne) {
  return Bound(LeafKind::kWeight, name, ne, DType::kF32, {});
}

absl::Status PlanRig::Plan(const PipelineOptions& options) {
  ASSIGN_OR_RETURN(graph_, GraphBuilder(g).Finish());
  input.graph = &graph_;
  input.leafs = places_;
  input.leafs.resize(graph_.nodes().size());
  ASSIGN_OR_RETURN(PlanContext context, PlanContext::Create(input));
  context_ = std::make_unique<PlanContext>(std::move(context));
  ASSIGN_OR_RETURN(result_, MakeExecutionPlan(*context_, options));
  return absl::OkStatus();
}

std::string PlanRig::NameOf(NodeId id) const {
  const std::string& name = graph_.node(id).name;
  return name.empty() ? absl::StrCat("%", Index(id)) : name;
}

std::string PlanRig::At(NodeId id) const {
  const Assignment& assignment = result_.plan.assignments[Index(id)];
  return absl::StrCat(
      assignment.device == kNoDevice ? "nowhere" : input.devices[assignment.device]->name(), " ",
      CauseCode(assignment));
}

std::string PlanRig::Splits() const {
  std::string text;
  for (const Split& split : result_.plan.splits) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", input.devices[split.device]->name());
    for (size_t i = 0; i < split.inputs.size(); ++i) {
      const Replica& replica = result_.plan.replicas[split.inputs[i]];
      absl::StrAppend(&text, i == 0 ? " [" : ", ", AbslView(ReplicaKindName(replica.kind)), " ",
                      NameOf(replica.source));
    }
    absl::StrAppend(&text, split.inputs.empty() ? ":" : "]:");
    for (int32_t i = split.begin; i < split.end; ++i) {
      if (graph_.Executes(NodeId{i})) absl::StrAppend(&text, " ", NameOf(NodeId{i}));
    }
  }
  return text;
}

std::string PlanRig::Copies() const {
  std::string text;
  for (const Replica& replica : result_.plan.replicas) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", AbslView(ReplicaKindName(replica.kind)), " ",
                    NameOf(replica.source), " -> ", input.devices[replica.device]->name(), " ",
                    replica.bytes);
  }
  return text;
}

}  // namespace weft
