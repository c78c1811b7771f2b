#include "common/cpu/cpu_backend.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cpu/launch.h"
#include "common/cpu/op_dispatch.h"
#include "common/device/slice_check.h"

namespace weft {
namespace {

// An op with everything about it that does not change between launches.
struct PreparedOp {
  const cpu::OpRow* row;
  reference::Operands operands;
  std::string node_text;  // for errors
};

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(std::vector<PreparedOp> ops) : ops_(std::move(ops)) {}
  const std::vector<PreparedOp>& ops() const { return ops_; }

 private:
  std::vector<PreparedOp> ops_;
};

// The address of a tensor whose place is checked.
// Errors: INVALID_ARGUMENT where the buffer's own address is less aligned than its offsets promise.
absl::StatusOr<uint8_t*> AddressOf(const GraphSlice& slice, NodeId id, NodeId user) {
  const TensorPlace& place = slice.places[static_cast<size_t>(Index(id))];
  auto* base = static_cast<uint8_t*>(place.buffer->host_data());
  uint8_t* address = base + place.offset;
  const DTypeInfo& info = GetDTypeInfo(slice.graph->layout(id).dtype);
  const auto unit = static_cast<uintptr_t>(info.block_elements == 1 ? info.block_bytes : 1);
  if (reinterpret_cast<uintptr_t>(address) % unit == 0) return address;
  return absl::InvalidArgumentError(absl::StrCat(NodeText(*slice.graph, user), ": tensor ",
                                                 Index(id), " lies at a misaligned address"));
}

absl::StatusOr<PreparedOp> PrepareOp(const GraphSlice& slice, NodeId id) {
  const Graph& graph = *slice.graph;
  const Node& node = graph.node(id);
  PreparedOp op{cpu::OpRowOf(node.op), reference::OperandsOf(graph, id), NodeText(graph, id)};
  for (size_t i = 0; i < node.sources.size(); ++i) {
    ASSIGN_OR_RETURN(op.operands.sources[i].data, AddressOf(slice, node.sources[i], id));
  }
  ASSIGN_OR_RETURN(op.operands.result.data, AddressOf(slice, id, id));
  return op;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> CpuBackend::Prepare(const GraphSlice& slice) {
  RETURN_IF_ERROR(CheckSlice(device_, slice));
  std::vector<PreparedOp> ops;
  int64_t workspace_bytes = 0;
  for (const NodeId id : slice.nodes) {
    if (!slice.graph->Executes(id)) continue;
    ASSIGN_OR_RETURN(PreparedOp op, PrepareOp(slice, id));
    ops.push_back(std::move(op));
    workspace_bytes = std::max(workspace_bytes, device_.WorkspaceBytes(*slice.graph, id));
  }
  RETURN_IF_ERROR(GrowWorkspace(workspace_bytes));
  return std::make_unique<CpuExecutable>(std::move(ops));
}

absl::Status CpuBackend::Launch(Executable& executable) {
  // The interface says that it comes from this backend's Prepare.
  const auto& prepared = static_cast<const CpuExecutable&>(executable);
  MutexLock lock(device_.launch_mutex_);
  cpu::Launch launch(*device_.pool_, *device_.kernels_, workspace(), options().progress);
  for (const PreparedOp& op : prepared.ops()) {
    absl::Status status = op.row->run(op.operands, launch);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(device_.name(), ": ", op.node_text, ": ", status.message()));
    }
    launch.Tick(0);
  }
  return absl::OkStatus();
}

}  // namespace weft
