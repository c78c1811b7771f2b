#include "coordinator/scheduler/plan_context.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/graph/plain_form.h"

namespace weft {
namespace {

bool IsHostSideKind(DeviceKind kind) {
  return kind == DeviceKind::kCpu || kind == DeviceKind::kAccelerator;
}

}  // namespace

NodeId BaseOf(const Graph& graph, NodeId id) {
  while (GetOpInfo(graph.node(id).op).is_view) id = graph.node(id).sources[0];
  return id;
}

absl::StatusOr<PlanContext> PlanContext::Create(const PlanInput& input) {
  PlanContext context(input);
  RETURN_IF_ERROR(context.Check());
  context.Describe();
  return context;
}

absl::Status PlanContext::Check() const {
  if (input_->graph == nullptr) return absl::InvalidArgumentError("a plan without a graph");
  if (input_->devices.empty() || static_cast<int64_t>(input_->devices.size()) > kMaxPlanDevices) {
    return absl::InvalidArgumentError(absl::StrCat("a plan over ", input_->devices.size(),
                                                   " devices, want 1 to ", kMaxPlanDevices));
  }
  // One device has no choice; of several the last takes what the others cannot run.
  if (device_count() > 1 && device(last_device()).kind() != DeviceKind::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last device of a plan is a CPU, not ", device(last_device()).name()));
  }
  if (static_cast<int64_t>(input_->leafs.size()) != graph().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input_->leafs.size(), " places for ", graph().size(), " nodes"));
  }
  for (const Pin& pin : input_->pins) {
    if (Index(pin.node) < 0 || Index(pin.node) >= graph().size() || pin.device < 0 ||
        pin.device >= device_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("pin of node ", Index(pin.node), " to device ", pin.device));
    }
  }
  for (const NodeId id : input_->options.observed) {
    if (Index(id) < 0 || Index(id) >= graph().size() || !graph().Executes(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", Index(id), " cannot be observed: it is not computed"));
    }
  }
  RETURN_IF_ERROR(CheckCommunicators());
  return CheckCollectives();
}

absl::Status PlanContext::CheckCommunicators() const {
  for (size_t c = 0; c < input_->communicators.size(); ++c) {
    const PlanCommunicator& ranks = input_->communicators[c];
    std::vector<int32_t> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (ranks.empty() || ranks.size() > size_t{kMaxRanks} || twice || sorted.front() < 0 ||
        sorted.back() >= device_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("communicator ", c, " has ", ranks.size(), " ranks", twice ? ", two" : "",
                       " on one device or on devices that do not exist; at most ", kMaxRanks));
    }
  }
  return absl::OkStatus();
}

absl::Status PlanContext::CheckCollectives() const {
  std::vector<int32_t> pin_of(graph().nodes().size(), kNoDevice);
  for (const Pin& pin : input_->pins) pin_of[Index(pin.node)] = pin.device;
  for (int32_t i = 0; i < graph().size(); ++i) {
    const CollectiveKey* key = CollectiveKeyOf(graph().node(NodeId{i}));
    if (key == nullptr) continue;
    if (key->communicator >= static_cast<int64_t>(input_->communicators.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeText(graph(), NodeId{i}), ": no communicator ", key->communicator));
    }
    const PlanCommunicator& ranks = CommunicatorOf(NodeId{i});
    if (std::find(ranks.begin(), ranks.end(), pin_of[i]) == ranks.end()) {
      return absl::InvalidArgumentError(absl::StrCat(NodeText(graph(), NodeId{i}),
                                                     " is not pinned to a rank of communicator ",
                                                     key->communicator));
    }
  }
  return absl::OkStatus();
}

const PlanCommunicator& PlanContext::CommunicatorOf(NodeId id) const {
  return input_->communicators[CollectiveKeyOf(graph().node(id))->communicator];
}

std::vector<int32_t> PlanContext::HostsOf(int32_t communicator) const {
  std::vector<int32_t> hosts;
  for (const int32_t d : input_->communicators[communicator]) hosts.push_back(machine_[d]);
  return hosts;
}

LinkModels PlanContext::LinksOf(int32_t communicator) const {
  const std::vector<LinkModels>& links = input_->communicator_links;
  return static_cast<size_t>(communicator) < links.size() ? links[communicator] : LinkModels{};
}

CollectiveAlgorithm PlanContext::AlgorithmOf(const Node& node) const {
  const auto* reduce = std::get_if<AllReduceAttributes>(&node.attributes);
  if (reduce == nullptr) return CollectiveAlgorithm::kByParts;
  const int32_t c = reduce->key.communicator;
  const int64_t elements = ElementCount(node.layout);
  const auto [found, fresh] = algorithms_.try_emplace({c, elements, reduce->wire});
  if (fresh) {
    found->second =
        ChooseAllReduce(elements, HostsOf(c), reduce->wire, LinksOf(c), input_->options.all_reduce);
  }
  return found->second;
}

void PlanContext::Describe() {
  absl::flat_hash_map<std::string, int32_t> hosts;
  absl::flat_hash_map<std::string, int32_t> machines;
  absl::flat_hash_map<const Device*, int32_t> position;
  const auto number = [](absl::flat_hash_map<std::string, int32_t>& known,
                         const std::string& name) {
    return known.emplace(name, static_cast<int32_t>(known.size())).first->second;
  };
  for (int32_t d = 0; d < device_count(); ++d) {
    host_.push_back(number(hosts, device(d).host()));
    machine_.push_back(number(machines, device(d).machine()));
    position.emplace(&device(d), d);
    host_side_.push_back(IsHostSideKind(device(d).kind()));
    const BatchRange range = static_cast<size_t>(d) < input_->batch_ranges.size()
                                 ? input_->batch_ranges[d]
                                 : device(d).preferred_batch();
    in_batch_.push_back(!Enabled(Rule::kBatch) || range.Contains(input_->batch));
  }
  for (int32_t d = 0; d < device_count(); ++d) {
    const auto owner = position.find(&device(d).buffer_type().device());
    memory_.push_back(owner == position.end() ? d : owner->second);
  }
  weight_users_.resize(graph().nodes().size());
  for (int32_t i = 0; i < graph().size(); ++i) {
    const NodeId id{i};
    if (!graph().Executes(id)) continue;
    for (const NodeId source : graph().node(id).sources) {
      if (IsWeight(source)) weight_users_[Index(graph().Root(source))].push_back(id);
    }
    const NodeId root = graph().Root(id);
    if (root != id && graph().Executes(root)) writers_[root].push_back(id);
  }
  FindOwners();
  support_.assign(static_cast<size_t>(device_count()) * graph().nodes().size(), 0);
  FindWeightHosts();
}

void PlanContext::FindOwners() {
  for (int32_t i = 0; i < graph().size(); ++i) {
    const BufferType* type = Place(NodeId{i}).type;
    if (type == nullptr || owners_.contains(type)) continue;
    int32_t owner = kNoDevice;
    for (int32_t d = device_count() - 1; d >= 0; --d) {
      if (owner == kNoDevice || &device(owner) != &type->device()) {
        if (&device(d) == &type->device() || ReadsType(d, *type)) owner = d;
      }
    }
    owners_.emplace(type, owner);
  }
}

void PlanContext::FindWeightHosts() {
  weight_hosts_.assign(graph().nodes().size(), -1);
  const bool several = std::any_of(host_.begin(), host_.end(), [](int32_t h) { return h != 0; });
  if (!several || !Enabled(Rule::kWeightHost)) return;
  absl::flat_hash_map<NodeId, std::vector<NodeId>>
      groups;  // by the tensor that they make or change
  for (int32_t i = 0; i < graph().size(); ++i) {
    if (graph().Executes(NodeId{i})) groups[graph().Root(NodeId{i})].push_back(NodeId{i});
  }
  for (const Pin& pin : input_->pins) groups.erase(graph().Root(pin.node));
  for (const auto& [root, nodes] : groups) {
    if (graph().IsLeaf(root) && Place(root).type != nullptr) continue;
    const int32_t host = WeightHostOf(nodes);
    for (const NodeId id : nodes) weight_hosts_[Index(id)] = host;
  }
}

int32_t PlanContext::WeightHostOf(absl::Span<const NodeId> nodes) const {
  for (const NodeId id : nodes) {
    for (const NodeId source : graph().node(id).sources) {
      const BufferType* type = IsWeight(source) ? Place(graph().Root(source)).type : nullptr;
      if (type == nullptr) continue;
      // What no listed device reads is bound through the last one.
      const int32_t owner = OwnerOf(*type);
      const int32_t host = host_[owner == kNoDevice ? last_device() : owner];
      for (int32_t d = 0; d < device_count(); ++d) {
        const auto runs = [&](NodeId node) { return Supports(d, node); };
        if (host_[d] == host && std::all_of(nodes.begin(), nodes.end(), runs)) return host;
      }
    }
  }
  return -1;
}

SupportKind PlanContext::AskSupport(int32_t d, NodeId id) const {
  if (IsCollective(graph().node(id).op)) {
    const PlanCommunicator& ranks = CommunicatorOf(id);
    const bool rank = std::find(ranks.begin(), ranks.end(), d) != ranks.end();
    return rank ? SupportKind::kYes : SupportKind::kNo;
  }
  if (device(d).Supports(graph(), id).ok()) return SupportKind::kYes;
  if (!HasPlainForm(graph(), id)) return SupportKind::kNo;
  const absl::StatusOr<Graph> plain = PlainFormOf(graph(), id);
  if (!plain.ok()) return SupportKind::kNo;
  for (int32_t i = 0; i < plain->size(); ++i) {
    if (plain->Executes(NodeId{i}) && !device(d).Supports(*plain, NodeId{i}).ok()) {
      return SupportKind::kNo;
    }
  }
  return SupportKind::kPlain;
}

SupportKind PlanContext::Support(int32_t d, NodeId id) const {
  if (!graph().Executes(id)) return SupportKind::kYes;
  uint8_t& known = support_[static_cast<size_t>(d) * graph().nodes().size() + Index(id)];
  if (known == 0) known = static_cast<uint8_t>(1 + static_cast<uint8_t>(AskSupport(d, id)));
  return static_cast<SupportKind>(known - 1);
}

absl::Status PlanContext::Refusal(int32_t d, NodeId id) const {
  return Supports(d, id) ? absl::OkStatus() : device(d).Supports(graph(), id);
}

bool PlanContext::ReadsType(int32_t d, const BufferType& type) const {
  const auto [found, fresh] = reads_.try_emplace(std::pair(d, &type), false);
  if (!fresh) return found->second;
  const bool own = &type == &device(d).buffer_type() || &type.device() == &device(d);
  found->second = (own || Enabled(Rule::kDirectRead)) && device(d).Supports(type).ok();
  return found->second;
}

bool PlanContext::Wants(int32_t d, NodeId id) const {
  const int64_t wanted = input_->options.offload_batch;
  if (wanted > 0 && device(d).kind() == DeviceKind::kGpu) {
    return OffloadBatch(graph(), id) >= wanted;
  }
  return device(d).Wants(graph(), id);
}

int32_t PlanContext::OwnerOf(const BufferType& type) const {
  const auto found = owners_.find(&type);
  return found == owners_.end() ? kNoDevice : found->second;
}

const LeafPlace& PlanContext::Place(NodeId leaf) const { return input_->leafs[Index(leaf)]; }

bool PlanContext::IsWeight(NodeId id) const {
  const NodeId root = graph().Root(id);
  const LeafAttributes* leaf = graph().leaf(root);
  return leaf != nullptr && leaf->kind == LeafKind::kWeight;
}

bool PlanContext::IsHostFilled(NodeId id) const {
  const LeafAttributes* leaf = graph().leaf(graph().Root(id));
  return leaf != nullptr && (leaf->kind == LeafKind::kInput || leaf->kind == LeafKind::kPageTable);
}

const BufferType* PlanContext::MemoryType(const Plan& plan, NodeId id) const {
  const NodeId root = graph().Root(id);
  const Assignment& assignment = plan.assignments[Index(root)];
  const bool bound = graph().IsLeaf(root) && Place(root).type != nullptr;
  if (bound && assignment.cause != Cause::kHostBound) return Place(root).type;
  return assignment.device == kNoDevice ? nullptr : &device(assignment.device).buffer_type();
}

bool PlanContext::Reads(const Plan& plan, int32_t d, NodeId id) const {
  const BufferType* type = MemoryType(plan, id);
  return type != nullptr && ReadsType(d, *type);
}

NodeId PlanContext::RefusedWriter(int32_t d, NodeId id) const {
  const auto writers = writers_.find(id);
  if (writers == writers_.end()) return kNoNode;
  for (const NodeId writer : writers->second) {
    if (!Supports(d, writer)) return writer;
  }
  return kNoNode;
}

bool PlanContext::MayRun(const Plan& plan, int32_t d, NodeId id) const {
  if (!Supports(d, id) || RefusedWriter(d, id) != kNoNode) return false;
  if (const int32_t home = WeightHost(id); home >= 0 && host_[d] != home) return false;
  const Node& node = graph().node(id);
  if (!GetOpInfo(node.op).writes_source) return true;
  const BufferType* type = MemoryType(plan, node.sources[0]);
  return type == nullptr ? graph().IsLeaf(graph().Root(id)) : ReadsType(d, *type);
}

std::string PlanContext::WhyNot(const Plan& plan, int32_t d, NodeId id) const {
  if (!Supports(d, id)) return std::string(Refusal(d, id).message());
  if (const NodeId writer = RefusedWriter(d, id); writer != kNoNode) {
    return absl::StrCat(NodeText(graph(), writer),
                        " writes into it: ", Refusal(d, writer).message());
  }
  if (const int32_t home = WeightHost(id); home >= 0 && host_[d] != home) {
    return "its weights are on another machine";
  }
  const BufferType* type = MemoryType(plan, graph().node(id).sources[0]);
  if (type == nullptr) return "what it writes into has no place";
  return std::string(device(d).Supports(*type).message());
}

NodeId PlanContext::ReplicatedTensor(NodeId id) const {
  const NodeId base = Base(id);
  if (base == id || IsHostFilled(id) || !IsContiguous(graph().layout(id))) return base;
  const int64_t part = ByteExtent(graph().layout(id)).value_or(0);
  return part < ByteExtent(graph().layout(base)).value_or(0) ? id : base;
}

NodeId PlanContext::ExpertIds(const Plan& plan, int32_t d, NodeId weight) const {
  if (!Enabled(Rule::kExpertCopies) || !graph().IsLeaf(weight)) return kNoNode;
  const BufferType* type = MemoryType(plan, weight);
  if (type == nullptr || !type->is_host() || type->device().host() != device(d).host()) {
    return kNoNode;
  }
  NodeId ids = kNoNode;
  for (const NodeId user : weight_users_[Index(weight)]) {
    if (MemoryOf(plan.assignments[Index(user)].device) != MemoryOf(d)) continue;
    const Node& node = graph().node(user);
    if (node.op != Op::kMulMatId || node.sources[0] != weight) return kNoNode;
    if (ids != kNoNode && node.sources[2] != ids) return kNoNode;
    ids = node.sources[2];
  }
  return ids;
}

}  // namespace weft
