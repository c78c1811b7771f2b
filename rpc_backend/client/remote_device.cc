#include "rpc_backend/client/remote_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/support_cache.h"
#include "rpc_backend/client/worker_connection.h"

namespace weft {

RemoteDevice::RemoteDevice(std::shared_ptr<WorkerConnection> connection, int32_t position,
                           std::string name, WorkerDevice info, RemoteDevice* owner)
    : connection_(std::move(connection)),
      position_(position),
      name_(std::move(name)),
      info_(std::move(info)),
      owner_(owner),
      support_(std::make_unique<SupportCache>(connection_, position_, name_)) {
  if (owner_ == nullptr) {
    buffer_type_ = std::make_unique<RemoteBufferType>(connection_, *this);
  }
}

RemoteDevice::~RemoteDevice() = default;

const std::string& RemoteDevice::host() const { return connection_->options().name; }

const std::string& RemoteDevice::machine() const {
  const std::string& identity = connection_->hello().host_identity;
  return identity.empty() ? host() : identity;
}

BufferType& RemoteDevice::buffer_type() {
  return owner_ != nullptr ? owner_->buffer_type() : *buffer_type_;
}

Support RemoteDevice::Supports(const Graph& graph, NodeId id) const {
  if (!graph.Executes(id)) return absl::OkStatus();
  const absl::StatusOr<NodeSupport> answer = support_->Find(graph, id);
  return answer.ok() ? answer->support : answer.status();
}

Support RemoteDevice::Supports(const BufferType& type) const {
  const auto* other = dynamic_cast<const RemoteDevice*>(&type.device());
  if (other == nullptr || other->connection_ != connection_) return CannotRead(*this, type);
  const bool own = other == this || other == owner_;
  const bool reads =
      std::find(info_.reads.begin(), info_.reads.end(), other->position_) != info_.reads.end();
  return own || reads ? absl::OkStatus() : CannotRead(*this, type);
}

bool RemoteDevice::Wants(const Graph& graph, NodeId id) const {
  if (!graph.Executes(id)) return false;
  const absl::StatusOr<NodeSupport> answer = support_->Find(graph, id);
  return answer.ok() && answer->wants;
}

int64_t RemoteDevice::WorkspaceBytes(const Graph& graph, NodeId id) const {
  if (!graph.Executes(id)) return 0;
  const absl::StatusOr<NodeSupport> answer = support_->Find(graph, id);
  return answer.ok() ? answer->workspace_bytes : 0;
}

absl::StatusOr<std::unique_ptr<Buffer>> RemoteDevice::WrapHostMemory(void*, int64_t, BufferUsage) {
  return absl::UnimplementedError(absl::StrCat(name_, " belongs to ", connection_->label(),
                                               ", which cannot see memory of this process"));
}

absl::StatusOr<std::unique_ptr<Backend>> RemoteDevice::OpenBackend(BackendOptions) {
  return absl::UnimplementedError(absl::StrCat(name_, " belongs to ", connection_->label(),
                                               ": work goes there as programs, not as calls"));
}

int64_t RemoteDevice::queries() const { return support_->queries(); }
absl::Status RemoteDevice::query_failure() const { return support_->failure(); }

}  // namespace weft
