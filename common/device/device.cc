#include "common/device/device.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {

std::string_view DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kGpu:
      return "gpu";
    case DeviceKind::kAccelerator:
      return "accel";
    case DeviceKind::kMeta:
      return "meta";
  }
  return "unknown";
}

Support CannotRead(const Device& device, const BufferType& type) {
  const bool packed = type.layout() != "standard";
  return absl::UnimplementedError(absl::StrCat(
      device.name(), " cannot read ", type.name(),
      packed ? absl::StrCat(", packed as ", AbslView(type.layout()), " for ", type.device().name())
             : ""));
}

Support CheckRunsOnDevice(const Graph& graph, NodeId id) {
  const Op op = graph.node(id).op;
  if (RunsOnDevice(op) || !graph.Executes(id)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("no device computes ", AbslView(OpName(op))));
}

int64_t OffloadBatch(const Graph& graph, NodeId id) {
  const TensorLayout& layout = graph.layout(id);
  switch (graph.node(id).op) {
    case Op::kGetRows:
      return 0;
    case Op::kMulMat:
      return layout.ne[1];
    case Op::kMulMatId:
    case Op::kRope:
      return layout.ne[2];
    default:
      return RowCount(layout);
  }
}

}  // namespace weft
