#include "coordinator/scheduler/execution_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program_limits.h"
#include "coordinator/scheduler/detached_collectives.h"

namespace weft {
namespace {

// Executed nodes whose memory another device copies from.
std::vector<bool> CrossingNodes(const ScheduledGraph& scheduled) {
  std::vector<bool> crossing(scheduled.graph.nodes().size());
  for (const ScheduledSplit& split : scheduled.splits) {
    for (const ScheduledCopy& copy : split.copies) {
      const NodeId source = scheduled.graph.Root(scheduled.graph.node(copy.node).sources[0]);
      crossing[Index(source)] = true;
      if (copy.ids != kNoNode) crossing[Index(scheduled.graph.Root(copy.ids))] = true;
    }
  }
  return crossing;
}

// Empty if steps may overlap on these devices, else why not (spec B.11).
std::string PipelineRefusal(const PlanContext& context, const ScheduledGraph& scheduled,
                            const std::vector<bool>& crossing) {
  std::vector<bool> used(static_cast<size_t>(context.device_count()));
  for (const ScheduledSplit& split : scheduled.splits) used[split.device] = true;
  if (std::count(used.begin(), used.end(), true) < 2) return "one device computes everything";
  for (int32_t d = 0; d < context.device_count(); ++d) {
    if (!used[d]) continue;
    const DeviceCapabilities capabilities = context.device(d).capabilities();
    // A processor's stream has a thread of its own, and is done when its calls return.
    const bool cpu = context.device(d).kind() == DeviceKind::kCpu;
    if (!cpu && (!capabilities.async || !capabilities.events)) {
      return absl::StrCat(context.device(d).name(), " has no ",
                          capabilities.async ? "events" : "asynchronous streams");
    }
    if (context.MemoryOf(d) != d) {
      return absl::StrCat(context.device(d).name(), " shares the memory of ",
                          context.device(context.MemoryOf(d)).name());
    }
  }
  const Graph& graph = scheduled.graph;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (crossing[i] && leaf != nullptr && leaf->kind != LeafKind::kWeight) {
      return absl::StrCat("'", graph.node(NodeId{i}).name, "' is read by another device");
    }
  }
  for (const ScheduledSplit& split : scheduled.splits) {
    for (const NodeId id : split.nodes) {
      for (const NodeId source : graph.node(id).sources) {
        const LeafAttributes* bound = graph.leaf(graph.Root(source));
        const bool weight = bound != nullptr && bound->kind == LeafKind::kWeight;
        if (weight || scheduled.devices[Index(source)] == split.device) continue;
        return absl::StrCat(NodeText(graph, id), " reads memory of another device");
      }
    }
  }
  return "";
}

absl::Status PlanPools(const PlanContext& context, const std::vector<bool>& crossing,
                       ExecutionPlan& result) {
  const ScheduledGraph& scheduled = result.scheduled;
  const int32_t count = context.device_count();
  std::vector<MemoryPool> pools(static_cast<size_t>(2) * count);
  for (int32_t d = 0; d < count; ++d) {
    const BufferType& type = context.device(d).buffer_type();
    MemoryPool pool;
    pool.alignment = std::max<int64_t>(type.alignment(), 64);
    pool.max_chunk_bytes = type.max_bytes();
    pool.tensor_bytes = [&type](const TensorLayout& layout) { return type.TensorBytes(layout); };
    pools[d] = pool;
    pool.reuse = false;
    pools[count + d] = std::move(pool);
  }
  std::vector<int32_t> pool_of(scheduled.graph.nodes().size(), -1);
  MemoryOptions options;
  options.in_place = context.Enabled(Rule::kInPlace);
  for (int32_t i = 0; i < scheduled.graph.size(); ++i) {
    const int32_t memory = context.MemoryOf(scheduled.devices[i]);
    pool_of[i] = result.copies > 1 && crossing[i] ? count + memory : memory;
  }
  for (const ScheduledSplit& split : scheduled.splits) {
    for (const ScheduledCopy& copy : split.copies) {
      if (copy.ids != kNoNode) options.extra_reads.push_back({copy.node, copy.ids});
    }
  }
  for (const DetachedCollective& detached : FindDetached(context, scheduled)) {
    options.late_reads.push_back({detached.node, scheduled.splits[detached.split].nodes.front()});
  }
  ASSIGN_OR_RETURN(result.memory, PlanMemory(scheduled.graph, pool_of, pools, options));
  return absl::OkStatus();
}

void MeasureWorkspace(const PlanContext& context, ExecutionPlan& result) {
  result.workspace_bytes.assign(static_cast<size_t>(context.device_count()), 0);
  for (const ScheduledSplit& split : result.scheduled.splits) {
    int64_t& most = result.workspace_bytes[split.device];
    for (const NodeId id : split.nodes) {
      if (!RunsOnDevice(result.scheduled.graph.node(id).op)) continue;
      most =
          std::max(most, context.device(split.device).WorkspaceBytes(result.scheduled.graph, id));
    }
  }
}

}  // namespace

absl::StatusOr<ExecutionPlan> MakeExecutionPlan(const PlanContext& context,
                                                const PipelineOptions& options) {
  ExecutionPlan result;
  const PassPipeline pipeline;
  ASSIGN_OR_RETURN(result.passes, pipeline.Run(context, result.plan, options));
  ASSIGN_OR_RETURN(result.scheduled, BuildScheduledGraph(context, result.plan));
  const std::vector<bool> crossing = CrossingNodes(result.scheduled);
  if (context.input().options.pipeline) {
    result.pipeline_refusal = PipelineRefusal(context, result.scheduled, crossing);
    result.copies = result.pipeline_refusal.empty() ? kMaxStepsInFlight : 1;
  }
  RETURN_IF_ERROR(PlanPools(context, crossing, result));
  MeasureWorkspace(context, result);
  return result;
}

}  // namespace weft
