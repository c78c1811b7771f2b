#include "tests/support/device_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr uint8_t kGuard = 0xA5;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRun>> DeviceRun::Create(Device& device, const Graph& graph,
                                                             BackendOptions options) {
  std::unique_ptr<DeviceRun> run(new DeviceRun(device, graph));
  RETURN_IF_ERROR(run->Place());
  ASSIGN_OR_RETURN(run->backend_, device.OpenBackend(std::move(options)));
  std::vector<NodeId> nodes;
  nodes.reserve(static_cast<size_t>(graph.size()));
  for (int32_t i = 0; i < graph.size(); ++i) nodes.push_back(NodeId{i});
  ASSIGN_OR_RETURN(run->executable_,
                   run->backend_->Prepare(GraphSlice{&graph, nodes, run->places_}));
  return run;
}

absl::Status DeviceRun::Place() {
  BufferType& type = device_.buffer_type();
  guard_bytes_ = type.alignment();
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const NodeId id{i};
    const NodeId root = graph_.Root(id);
    if (root != id) {
      const TensorPlace& place = places_[static_cast<size_t>(Index(root))];
      places_.push_back({place.buffer, place.offset + graph_.node(id).view_offset});
      buffers_.emplace_back();
      continue;
    }
    const int64_t bytes = type.TensorBytes(graph_.layout(id));
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                     type.Allocate(bytes + 2 * guard_bytes_, BufferUsage::kAny));
    RETURN_IF_ERROR(buffer->Fill(0, kGuard, buffer->size()));
    places_.push_back({buffer.get(), guard_bytes_});
    buffers_.push_back(std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status DeviceRun::Set(NodeId id, absl::Span<const uint8_t> bytes) {
  const TensorPlace& place = places_[static_cast<size_t>(Index(id))];
  return place.buffer->Set(place.offset, bytes.data(), static_cast<int64_t>(bytes.size()));
}

absl::StatusOr<std::vector<uint8_t>> DeviceRun::Get(NodeId id) {
  const TensorPlace& place = places_[static_cast<size_t>(Index(id))];
  std::vector<uint8_t> bytes(static_cast<size_t>(ByteExtent(graph_.layout(id)).value()));
  RETURN_IF_ERROR(
      place.buffer->Get(place.offset, bytes.data(), static_cast<int64_t>(bytes.size())));
  return bytes;
}

absl::Status DeviceRun::CheckGuards(NodeId id) {
  Buffer& buffer = *buffers_[static_cast<size_t>(Index(id))];
  std::vector<uint8_t> bytes(static_cast<size_t>(guard_bytes_));
  for (const int64_t at : {int64_t{0}, buffer.size() - guard_bytes_}) {
    RETURN_IF_ERROR(buffer.Get(at, bytes.data(), guard_bytes_));
    if (!std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == kGuard; })) {
      return absl::DataLossError(absl::StrCat(NodeText(graph_, id), ": written outside"));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceRun::Run() {
  RETURN_IF_ERROR(backend_->Launch(*executable_));
  RETURN_IF_ERROR(backend_->Synchronize());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    if (buffers_[static_cast<size_t>(i)] != nullptr) RETURN_IF_ERROR(CheckGuards(NodeId{i}));
  }
  return absl::OkStatus();
}

}  // namespace weft
