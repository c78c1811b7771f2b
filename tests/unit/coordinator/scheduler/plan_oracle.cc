#include "tests/unit/coordinator/scheduler/plan_oracle.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/graph/plain_form.h"

namespace weft {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes BytesOf(const Graph& graph, const HostGraph& host, NodeId id) {
  const uint8_t* first = host.data()[Index(id)];
  return {first, first + *ByteExtent(graph.layout(id))};
}

bool Compares(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op == Op::kTopK || node.op == Op::kArgMax;
  });
}

// sum((a - b)^2) is small beside sum(b^2).
bool NearlyEqual(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return false;
  double error = 0;
  double size = 0;
  for (size_t at = 0; at + sizeof(float) <= a.size(); at += sizeof(float)) {
    float x = 0;
    float y = 0;
    std::memcpy(&x, a.data() + at, sizeof(float));
    std::memcpy(&y, b.data() + at, sizeof(float));
    error += (static_cast<double>(x) - y) * (static_cast<double>(x) - y);
    size += static_cast<double>(y) * y;
  }
  return error <= 1e-9 * size + 1e-12;
}

}  // namespace

PlanOracle::PlanOracle(const PlanContext& context, const ExecutionPlan& plan)
    : context_(context),
      plan_(plan),
      leafs_(context.graph()),
      scheduled_host_(plan.scheduled.graph) {
  Resolve();
  resolved_host_ = std::make_unique<HostGraph>(resolved_);
}

void PlanOracle::Resolve() {
  const Graph& graph = context_.graph();
  std::vector<NodeId> node_of;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    Node node = graph.node(id);
    for (NodeId& source : node.sources) source = node_of[Index(source)];
    if (node.view_root != kNoNode) node.view_root = node_of[Index(node.view_root)];
    const bool plain =
        context_.Support(plan_.plan.assignments[i].device, id) == SupportKind::kPlain;
    if (plain) {
      const auto last = AppendPlainForm(graph, id, node.sources, resolved_);
      WEFT_CHECK(last.ok());
      node_of.push_back(*last);
    } else {
      node_of.push_back(resolved_.Append(std::move(node)));
    }
    resolved_origin_.resize(resolved_.nodes().size(), kNoNode);
    resolved_origin_[Index(node_of.back())] = id;
  }
}

void PlanOracle::Fill(const Graph& graph, const std::vector<NodeId>& origin, HostGraph& host) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr || (leaf->kind == LeafKind::kCache && !first_)) continue;
    const absl::Span<uint8_t> from = leafs_.bytes(origin[i]);
    std::copy(from.begin(), from.end(), host.bytes(NodeId{i}).begin());
  }
}

absl::Status PlanOracle::Step() {
  const Graph& scheduled = plan_.scheduled.graph;
  Fill(resolved_, resolved_origin_, *resolved_host_);
  Fill(scheduled, plan_.scheduled.origin, scheduled_host_);
  first_ = false;
  RETURN_IF_ERROR(resolved_host_->Run());
  RETURN_IF_ERROR(scheduled_host_.Run());
  outputs_.clear();
  for (const NodeId id : plan_.scheduled.outputs) {
    outputs_.push_back(BytesOf(scheduled, scheduled_host_, id));
  }
  resolved_outputs_.clear();
  for (int32_t i = 0; i < resolved_.size(); ++i) {
    if (!resolved_.node(NodeId{i}).output) continue;
    resolved_outputs_.push_back(BytesOf(resolved_, *resolved_host_, NodeId{i}));
  }
  return absl::OkStatus();
}

std::optional<std::vector<uint8_t>> PlanOracle::Value(NodeId id) {
  for (const ScheduledSplit& split : plan_.scheduled.splits) {
    for (const NodeId at : split.nodes) {
      if (plan_.scheduled.origin[Index(at)] != id) continue;
      return BytesOf(plan_.scheduled.graph, scheduled_host_, at);
    }
  }
  return std::nullopt;
}

std::string PlanOracle::Disagreement() {
  if (outputs_.size() != resolved_outputs_.size()) return "another number of outputs";
  const bool exact = plan_.scheduled.fused == 0;
  if (!exact && Compares(context_.graph())) return "";
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool same = exact ? outputs_[i] == resolved_outputs_[i]
                            : NearlyEqual(outputs_[i], resolved_outputs_[i]);
    if (!same) return absl::StrCat("the scheduled graph has another output ", i);
  }
  return "";
}

}  // namespace weft
