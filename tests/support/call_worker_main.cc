// weft-call-worker ADDRESS VERB: one session with a worker that calls what no command of weft
// calls. Errors and exit codes as weft's. VERB is FreeBuffer, FillBuffer, WriteBuffer, ReadBuffer,
// Statistics, ReleaseInstance, Drain or kCancel.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/exit_code.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/message_kinds.h"

namespace weft {
namespace {

constexpr int64_t kBytes = 4096;
constexpr std::chrono::milliseconds kLinkTime{5000};

absl::Status UseBuffer(RemoteWorker& worker, const std::string& verb) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> buffer,
                   worker.devices()[0]->buffer_type().Allocate(kBytes, BufferUsage::kAny));
  std::string data(kBytes, 'x');
  if (verb == "FillBuffer") return buffer->Fill(0, 'x', kBytes);
  if (verb == "WriteBuffer") return buffer->Set(0, data.data(), kBytes);
  return buffer->Get(0, data.data(), kBytes);
}

// The next allocation waits until what was freed is free.
absl::Status FreeBuffer(RemoteWorker& worker) {
  BufferType& type = worker.devices()[0]->buffer_type();
  { RETURN_IF_ERROR(type.Allocate(kBytes, BufferUsage::kAny).status()); }
  return type.Allocate(kBytes, BufferUsage::kAny).status();
}

absl::StatusOr<std::unique_ptr<FleetLink>> OpenLink(RemoteWorker& worker) {
  FleetLinkOptions options;
  options.transport = "grpc";
  options.timeout = kLinkTime;
  return FleetLink::Open({&worker}, options);
}

// An instance that the worker does not have.
absl::Status ReleaseInstance(RemoteWorker& worker) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FleetLink> link, OpenLink(worker));
  proto::ReleaseInstanceRequest request;
  proto::ReleaseInstanceReply reply;
  request.set_instance(1);
  const absl::Status status = worker.connection().Invoke(
      "ReleaseInstance", &proto::Worker::Stub::ReleaseInstance, request, reply);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// A message that nobody answers: what became of the worker shows in the next call.
absl::Status CancelStep(RemoteWorker& worker) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FleetLink> link, OpenLink(worker));
  const MessageHeader header{.epoch = link->epoch(),
                             .kind = static_cast<uint32_t>(MessageKind::kCancel),
                             .step = 1,
                             .id = 0};
  RETURN_IF_ERROR(link->port().Send(0, header, {}));
  // The worker has taken the message when it has answered one that was sent after it.
  for (const PairMeasurement& pair : link->MeasureLinks(kLinkTime)) {
    if (!pair.status.ok() && worker.lost().ok()) return pair.status;
  }
  return worker.Statistics().status();
}

absl::Status CallWorker(const std::string& address, const std::string& verb, Logger& logger) {
  RemoteWorkerOptions options;
  options.address = address;
  options.loss_after = 2 * options.ping_period;
  ASSIGN_OR_RETURN(const std::unique_ptr<RemoteWorker> worker,
                   RemoteWorker::Connect(options, &logger));
  constexpr std::array kOfBuffers = {"FillBuffer", "WriteBuffer", "ReadBuffer"};
  if (std::find(kOfBuffers.begin(), kOfBuffers.end(), verb) != kOfBuffers.end()) {
    return UseBuffer(*worker, verb);
  }
  if (verb == "FreeBuffer") return FreeBuffer(*worker);
  if (verb == "Statistics") return worker->Statistics().status();
  if (verb == "ReleaseInstance") return ReleaseInstance(*worker);
  if (verb == "Drain") return worker->Drain().status();
  if (verb == "kCancel") return CancelStep(*worker);
  return absl::InvalidArgumentError(absl::StrCat("no way to call '", verb, "'"));
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Logger logger("weft", weft::LogLevel::kInfo);
  if (argc != 3) {
    logger.Error("usage: weft-call-worker ADDRESS VERB");
    return weft::kExitUsage;
  }
  const absl::Status status = weft::CallWorker(argv[1], argv[2], logger);
  if (!status.ok()) logger.Error(weft::StdView(status.message()));
  return weft::ExitCode(status);
}
