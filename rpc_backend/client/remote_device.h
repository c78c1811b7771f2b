// A device of a worker: answers the scheduler's questions. It has no Backend: what runs there is a
// program (decision 2).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "rpc_backend/protocol/hello_codec.h"

namespace weft {

class RemoteBufferType;
class SupportCache;
class WorkerConnection;

// Thread-safe. Owned by the RemoteWorker.
class RemoteDevice final : public Device {
 public:
  // `position` is that in the worker's inventory; `owner` is the device whose memory it shares, or
  // null for a device with memory of its own.
  RemoteDevice(std::shared_ptr<WorkerConnection> connection, int32_t position, std::string name,
               WorkerDevice info, RemoteDevice* owner);
  ~RemoteDevice() override;

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return info_.description; }
  DeviceKind kind() const override { return info_.kind; }
  const std::string& host() const override;  // the worker's name
  // The identity that the worker states; its name where it states none.
  const std::string& machine() const override;
  // Where the worker is too old to tell, its description, which is no newer worker's word.
  const std::string& arithmetic() const override {
    return info_.arithmetic.empty() ? info_.description : info_.arithmetic;
  }
  DeviceMemory memory() const override { return info_.memory; }
  DeviceCapabilities capabilities() const override { return info_.capabilities; }
  BufferType& buffer_type() override;
  BatchRange preferred_batch() const override { return info_.preferred_batch; }

  // Asked of the worker for all new kinds of nodes of `graph` at once, and remembered. A worker
  // that cannot be asked supports nothing: the answer is then its error.
  Support Supports(const Graph& graph, NodeId id) const override;
  Support Supports(const BufferType& type) const override;
  bool Wants(const Graph& graph, NodeId id) const override;
  int64_t WorkspaceBytes(const Graph& graph, NodeId id) const override;

  // UNIMPLEMENTED: memory of this process is not the worker's, and work goes there as programs.
  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                         BufferUsage usage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) override;

  int32_t position() const { return position_; }
  const WorkerDevice& info() const { return info_; }
  // Questions that were sent so far.
  int64_t queries() const;
  // Why the last question has no answer, so that the device seems to support nothing; else OK.
  absl::Status query_failure() const;

 private:
  const std::shared_ptr<WorkerConnection> connection_;
  const int32_t position_;
  const std::string name_;
  const WorkerDevice info_;
  RemoteDevice* const owner_;
  std::unique_ptr<RemoteBufferType> buffer_type_;  // null where it shares another's
  std::unique_ptr<SupportCache> support_;
};

}  // namespace weft
