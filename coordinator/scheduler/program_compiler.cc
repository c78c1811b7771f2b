#include "coordinator/scheduler/program_compiler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/scheduler/liveness_allocator.h"

namespace weft {
namespace {

absl::Status CheckSupport(const Graph& graph, const Device& device) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph.Executes(NodeId{i})) continue;
    const absl::Status support = device.Supports(graph, NodeId{i});
    if (support.ok()) continue;
    const Node& node = graph.node(NodeId{i});
    return absl::UnimplementedError(absl::StrCat(device.name(), " cannot run ",
                                                 AbslView(OpName(node.op)), " '", node.name,
                                                 "': ", support.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompiledProgram> CompileForDevice(const Graph& graph, const Device& device) {
  RETURN_IF_ERROR(CheckSupport(graph, device));
  BufferType& memory = const_cast<Device&>(device).buffer_type();
  ArenaOptions options;
  options.alignment = std::max<int64_t>(memory.alignment(), 64);
  options.tensor_bytes = [&memory](const TensorLayout& layout) {
    return memory.TensorBytes(layout);
  };
  ASSIGN_OR_RETURN(const ArenaPlan arena, PlanArena(graph, options));

  CompiledProgram result;
  result.arena_bytes = arena.bytes;
  result.arena_lower_bound = arena.lower_bound;
  Program& program = result.program;
  program.devices = {{device.name(), {0}}};
  program.slots.push_back({SlotKind::kArena, 0, 0, std::max(arena.bytes, options.alignment)});
  program.places.resize(graph.size());
  ComputeCommand compute;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    const Node& node = graph.node(id);
    SlotPlace& place = program.places[i];
    if (const LeafAttributes* leaf = graph.leaf(id)) {
      place = {static_cast<int32_t>(program.slots.size()), 0};
      program.slots.push_back(
          {SlotKindOf(leaf->kind), leaf->id, 0, memory.TensorBytes(node.layout)});
    } else if (graph.Root(id) != id) {
      place = program.places[Index(graph.Root(id))];
      place.offset += node.view_offset;
    } else {
      place = {0, arena.offsets[i]};
    }
    if (!graph.Executes(id)) continue;
    compute.nodes.push_back(id);
    result.workspace_bytes = std::max(result.workspace_bytes, device.WorkspaceBytes(graph, id));
    if (node.output) program.outputs.push_back({id});
  }
  program.streams.push_back({0, {std::move(compute)}});
  program.graph = graph;
  return result;
}

}  // namespace weft
