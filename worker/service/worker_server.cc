#include "worker/service/worker_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/grpc_tls/gated_port.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "rpc_backend/protocol/limits.h"
#include "worker/service/control_service.h"

namespace weft {

struct WorkerServer::Parts {
  SessionTable* sessions = nullptr;
  std::unique_ptr<ControlService> control;
  std::unique_ptr<GatedPort> port;  // with TLS
  std::unique_ptr<grpc::Server> server;
};

WorkerServer::WorkerServer() : parts_(std::make_unique<Parts>()) {}

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(
    const WorkerServerOptions& options, const WorkerParts& parts, SessionTable& sessions,
    const Clock& clock) {
  std::unique_ptr<WorkerServer> made(new WorkerServer());
  made->parts_->sessions = &sessions;
  made->parts_->control = std::make_unique<ControlService>(parts, sessions, options.hello, clock);
  ASSIGN_OR_RETURN(const int port, made->Listen(options, clock));
  made->SetServing(true);
  HostAddress address = options.listen;
  if (address.socket_path.empty()) address.port = port;
  made->address_ = address.Text();
  if (!options.announce.host.empty()) address.host = options.announce.host;
  if (options.announce.port != 0) address.port = options.announce.port;
  options.data->SetAddress(address.Text());
  return made;
}

absl::StatusOr<int> WorkerServer::Listen(const WorkerServerOptions& options, const Clock& clock) {
  const WireLimits limits;
  const bool guarded = options.tls != nullptr && options.listen.socket_path.empty();
  int port = 0;
  grpc::EnableDefaultHealthCheckService(true);  // of servers built from now on
  grpc::ServerBuilder builder;
  RefuseCompressed(builder);
  // Else a second worker would share the port in silence.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Coordinators ask all the time whether a connection still moves: gRPC would hang up on them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.control_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(limits.control_message_bytes));
  if (guarded) {
    ASSIGN_OR_RETURN(parts_->port,
                     GatedPort::Listen(options.listen, options.tls, clock, *options.logger));
    parts_->port->AddTo(builder);
    port = parts_->port->port();
  } else {
    builder.AddListeningPort(options.listen.Text(), grpc::InsecureServerCredentials(), &port);
  }
  builder.RegisterService(parts_->control.get());
  builder.RegisterService(&options.data->service());
  parts_->server = builder.BuildAndStart();
  if (parts_->server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.listen.Text(),
                                               ": in use, or not of this machine"));
  }
  if (guarded) RETURN_IF_ERROR(parts_->port->Start());
  return port;
}

WorkerServer::~WorkerServer() { Shutdown("the worker ends", std::chrono::milliseconds(0)); }

void WorkerServer::SetServing(bool serving) {
  if (parts_->server == nullptr) return;
  grpc::HealthCheckServiceInterface* const health = parts_->server->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus("", serving);
  health->SetServingStatus("weft.proto.Worker", serving);
}

void WorkerServer::Shutdown(const std::string& reason, std::chrono::milliseconds grace) {
  if (parts_->server == nullptr) return;
  if (parts_->port != nullptr) parts_->port->Stop();
  parts_->sessions->EndAll(reason);
  parts_->server->Shutdown(GrpcDeadlineIn(grace));
  parts_->server->Wait();
  parts_->server.reset();
}

}  // namespace weft
