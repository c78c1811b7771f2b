#include "coordinator/scheduler/plan_verifier.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status Bad(const PlanContext& context, NodeId id, const absl::AlphaNum& why) {
  return absl::InternalError(absl::StrCat(NodeText(context.graph(), id), ": ", why));
}

using ReplicaIndex = absl::flat_hash_map<std::pair<NodeId, int32_t>, std::vector<int32_t>>;

absl::Status CheckSplits(const PlanContext& context, const Plan& plan) {
  int32_t next = 0;
  for (size_t s = 0; s < plan.splits.size(); ++s) {
    const Split& split = plan.splits[s];
    if (split.begin != next || split.end <= split.begin) {
      return absl::InternalError(absl::StrCat("split ", s, " is [", split.begin, ", ", split.end,
                                              "), want a start of ", next));
    }
    next = split.end;
    for (int32_t i = split.begin; i < split.end; ++i) {
      if (!context.graph().Executes(NodeId{i})) continue;
      if (plan.assignments[i].device == split.device) continue;
      return Bad(context, NodeId{i}, absl::StrCat("is not on the device of split ", s));
    }
  }
  if (!plan.splits.empty() && next != context.graph().size()) {
    return absl::InternalError(absl::StrCat("the splits end at node ", next));
  }
  return absl::OkStatus();
}

// One node may need more than the limit at once; no cut helps there.
bool OneNodeNeedsAll(const PlanContext& context, const Plan& plan, const Split& split,
                     int64_t staged_count) {
  for (int32_t i = split.begin; i < split.end; ++i) {
    int64_t count = 0;
    for (const int32_t at : split.inputs) {
      const Replica& replica = plan.replicas[at];
      if (!context.IsWeight(replica.source) || !context.graph().Executes(NodeId{i})) continue;
      const auto& sources = context.graph().node(NodeId{i}).sources;
      count += std::any_of(sources.begin(), sources.end(), [&](NodeId source) {
        return context.ReplicatedTensor(source) == replica.source;
      });
    }
    if (count == staged_count) return true;
  }
  return false;
}

absl::Status CheckReplicas(const PlanContext& context, const Plan& plan, ReplicaIndex& index) {
  std::vector<int32_t> listed(plan.replicas.size());
  const int64_t limit = context.input().options.staged_bytes_limit;
  for (size_t s = 0; s < plan.splits.size(); ++s) {
    int64_t staged = 0;
    int64_t staged_count = 0;
    for (const int32_t at : plan.splits[s].inputs) {
      const Replica& replica = plan.replicas[at];
      ++listed[at];
      if (replica.split != static_cast<int32_t>(s) || replica.device != plan.splits[s].device) {
        return Bad(context, replica.source, absl::StrCat("is not an input of split ", s));
      }
      if (replica.kind != ReplicaKind::kWeight && replica.kind != ReplicaKind::kExperts) continue;
      staged += replica.bytes;
      ++staged_count;
    }
    if (staged > limit && context.Enabled(Rule::kStagedLimit) &&
        !OneNodeNeedsAll(context, plan, plan.splits[s], staged_count)) {
      return absl::InternalError(
          absl::StrCat("split ", s, " stages ", staged, " bytes of weights"));
    }
  }
  for (size_t at = 0; at < plan.replicas.size(); ++at) {
    const Replica& replica = plan.replicas[at];
    if (listed[at] != 1) return Bad(context, replica.source, "is not copied exactly once");
    std::vector<int32_t>& copies = index[{replica.source, context.MemoryOf(replica.device)}];
    if (!copies.empty() && context.Enabled(Rule::kReuseReplica)) {
      return Bad(context, replica.source, "is copied twice into one memory");
    }
    copies.push_back(replica.split);
  }
  return absl::OkStatus();
}

absl::Status CheckSources(const PlanContext& context, const Plan& plan, const ReplicaIndex& index) {
  int32_t s = 0;
  for (int32_t i = 0; i < context.graph().size(); ++i) {
    if (!context.graph().Executes(NodeId{i})) continue;
    while (i >= plan.splits[s].end) ++s;
    const int32_t d = plan.splits[s].device;
    for (const NodeId source : context.graph().node(NodeId{i}).sources) {
      if (context.Reads(plan, d, source)) continue;
      const auto found = index.find({context.ReplicatedTensor(source), context.MemoryOf(d)});
      if (found == index.end() || found->second.front() > s) {
        return Bad(context, NodeId{i},
                   absl::StrCat("its source ", Index(source), " is not on its device"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAssignments(const PlanContext& context, const Plan& plan) {
  for (const Pin& pin : context.input().pins) {
    if (plan.assignments[Index(pin.node)].device != pin.device) {
      return Bad(context, pin.node, "left its pin");
    }
  }
  for (int32_t i = 0; i < context.graph().size(); ++i) {
    const int32_t d = plan.assignments[i].device;
    if (d == kNoDevice) continue;
    if (d < 0 || d >= context.device_count()) return Bad(context, NodeId{i}, "has no such device");
    if (!context.Supports(d, NodeId{i})) {
      return Bad(context, NodeId{i},
                 absl::StrCat("is on ", context.device(d).name(), ", which cannot run it"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCut(const PlanContext& context, const Plan& plan) {
  for (int32_t i = 0; i < context.graph().size(); ++i) {
    if (plan.assignments[i].device == kNoDevice) return Bad(context, NodeId{i}, "has no device");
  }
  RETURN_IF_ERROR(CheckSplits(context, plan));
  ReplicaIndex index;
  RETURN_IF_ERROR(CheckReplicas(context, plan, index));
  return CheckSources(context, plan, index);
}

}  // namespace weft
