#include "worker/service/control_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/host/host_facts.h"
#include "common/transport/link_probe.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/grpc_status.h"
#include "rpc_backend/protocol/host_codec.h"
#include "rpc_backend/protocol/message_check.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/program_codec.h"
#include "rpc_backend/protocol/version.h"
#include "worker/service/requests.h"

namespace weft {

absl::StatusOr<std::shared_ptr<Session>> ControlService::EnterSession(
    const google::protobuf::Message& request, int64_t session) {
  RETURN_IF_ERROR(CheckMessage(request));
  return sessions_.Find(session);
}

grpc::Status ControlService::Hello(grpc::ServerContext*, const proto::HelloRequest* request,
                                   proto::HelloReply* reply) {
  const absl::StatusOr<CoordinatorHello> other = DecodeHello(*request);
  if (!other.ok()) return ToGrpc(other.status());
  // The coordinator compares and says which side to upgrade.
  WorkerHello own = hello_;
  for (size_t i = 0; i < parts_.devices.size(); ++i) {
    own.devices[i].memory = parts_.devices[i]->memory();
  }
  own.draining = sessions_.draining();
  own.sessions = sessions_.count();
  EncodeHello(own, *reply);
  return grpc::Status::OK;
}

grpc::Status ControlService::OpenEpoch(grpc::ServerContext*, const proto::OpenEpochRequest* request,
                                       proto::OpenEpochReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    EpochOptions options;
    options.epoch = request->epoch();
    options.own_number = request->own_number();
    options.coordinator_number = request->coordinator_number();
    ASSIGN_OR_RETURN(options.key, SessionKey::FromBytes(request->session_key()));
    for (const proto::Peer& peer : request->expected()) options.expected.push_back(PeerOf(peer));
    ASSIGN_OR_RETURN(const std::string address,
                     session->OpenEpoch(request->transport(), std::move(options)));
    reply->set_address(address);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::ConnectPeers(grpc::ServerContext*,
                                          const proto::ConnectPeersRequest* request,
                                          proto::ConnectPeersReply*) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    const auto deadline = clock_.Now() + std::chrono::milliseconds(request->timeout_ms());
    for (const proto::Peer& peer : request->peers()) {
      RETURN_IF_ERROR(session->Connect(request->epoch(), PeerOf(peer), peer.address(), deadline));
    }
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::QuerySupport(grpc::ServerContext*,
                                          const proto::QuerySupportRequest* request,
                                          proto::QuerySupportReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(Enter(*request).status());
    return AnswerSupport(parts_, *request, *reply);
  };
  return ToGrpc(run());
}

grpc::Status ControlService::QueryTensorBytes(grpc::ServerContext*,
                                              const proto::QueryTensorBytesRequest* request,
                                              proto::QueryTensorBytesReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(Enter(*request).status());
    return AnswerTensorBytes(parts_.devices, *request, *reply);
  };
  return ToGrpc(run());
}

grpc::Status ControlService::AllocateBuffer(grpc::ServerContext*,
                                            const proto::AllocateBufferRequest* request,
                                            proto::AllocateBufferReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const int64_t handle,
                     session->Allocate(request->device(), request->bytes(),
                                       static_cast<BufferUsage>(request->usage())));
    reply->set_buffer(handle);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::FreeBuffer(grpc::ServerContext*,
                                        const proto::FreeBufferRequest* request,
                                        proto::FreeBufferReply*) {
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = Enter(*request);
  if (!session.ok()) return ToGrpc(session.status());
  return ToGrpc((*session)->Free(request->buffer()));
}

grpc::Status ControlService::FillBuffer(grpc::ServerContext*,
                                        const proto::FillBufferRequest* request,
                                        proto::FillBufferReply*) {
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = Enter(*request);
  if (!session.ok()) return ToGrpc(session.status());
  return ToGrpc((*session)->Fill(request->buffer(), request->offset(), request->bytes(),
                                 static_cast<uint8_t>(request->value())));
}

grpc::Status ControlService::WriteBuffer(grpc::ServerContext*,
                                         const proto::WriteBufferRequest* request,
                                         proto::WriteBufferReply*) {
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = Enter(*request);
  if (!session.ok()) return ToGrpc(session.status());
  return ToGrpc((*session)->Write(request->buffer(), request->offset(), BytesOf(request->data())));
}

grpc::Status ControlService::ReadBuffer(grpc::ServerContext*,
                                        const proto::ReadBufferRequest* request,
                                        proto::ReadBufferReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    std::string& data = *reply->mutable_data();
    data.resize(static_cast<size_t>(request->bytes()));  // within the limits of CheckMessage
    return session->Read(request->buffer(), request->offset(),
                         {reinterpret_cast<uint8_t*>(data.data()), data.size()});
  };
  return ToGrpc(run());
}

grpc::Status ControlService::InstallProgram(grpc::ServerContext*,
                                            const proto::InstallProgramRequest* request,
                                            proto::InstallProgramReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    RETURN_IF_ERROR(CheckContent("the program", request->program(), request->sha256()));
    ASSIGN_OR_RETURN(Program program, DecodeProgram(request->program()));
    ASSIGN_OR_RETURN(const ProgramId id, session->Install(std::move(program)));
    reply->set_program(static_cast<int64_t>(id));
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::Instantiate(grpc::ServerContext*,
                                         const proto::InstantiateRequest* request,
                                         proto::InstantiateReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    RETURN_IF_ERROR(CheckContent(*request));
    std::vector<HandleBinding> bindings;
    for (const proto::Binding& binding : request->bindings()) {
      const SlotKind kind = binding.kind() == 0 ? SlotKind::kWeight : SlotKind::kCache;
      bindings.push_back({kind, binding.id(), binding.buffer(), binding.offset()});
    }
    ASSIGN_OR_RETURN(const Instantiated made,
                     session->Instantiate(ProgramId{request->program()}, bindings));
    reply->set_instance(static_cast<int64_t>(made.instance));
    reply->set_memory_replaced(made.counters.memory_replaced);
    reply->set_prepared_again(made.counters.prepared_again);
    reply->set_replaced_reason(made.counters.last_reason);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::ReleaseInstance(grpc::ServerContext*,
                                             const proto::ReleaseInstanceRequest* request,
                                             proto::ReleaseInstanceReply*) {
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = Enter(*request);
  if (!session.ok()) return ToGrpc(session.status());
  return ToGrpc((*session)->Release(InstanceId{request->instance()}));
}

grpc::Status ControlService::MeasureLink(grpc::ServerContext*,
                                         const proto::MeasureLinkRequest* request,
                                         proto::MeasureLinkReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> epoch, session->epoch());
    const auto deadline = clock_.Now() + std::chrono::milliseconds(request->timeout_ms());
    MessagePort& port = epoch->port();
    LinkProbeOptions probe;
    probe.key = {.epoch = epoch->number(), .kind = static_cast<uint32_t>(MessageKind::kProbe)};
    if (!request->initiate()) return AnswerLinkProbe(port, request->peer(), probe, deadline);
    ASSIGN_OR_RETURN(const LinkMeasurement speed,
                     weft::MeasureLink(port, request->peer(), probe, deadline));
    for (const PeerTraffic& traffic : port.traffic()) {
      if (traffic.peer == request->peer()) reply->set_transport(traffic.transport);
    }
    reply->set_latency_us(speed.latency_us);
    reply->set_bytes_per_s(speed.bytes_per_s);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::Statistics(grpc::ServerContext*,
                                        const proto::StatisticsRequest* request,
                                        proto::StatisticsReply* reply) {
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = Enter(*request);
  if (!session.ok()) return ToGrpc(session.status());
  FillStatistics((*session)->statistics(), *reply);
  if (request->host()) EncodeHost(ReadHostFacts(), *reply->mutable_host());
  return grpc::Status::OK;
}

grpc::Status ControlService::Drain(grpc::ServerContext*, const proto::DrainRequest*,
                                   proto::DrainReply* reply) {
  sessions_.Drain();
  reply->set_sessions(sessions_.count());
  return grpc::Status::OK;
}

}  // namespace weft
