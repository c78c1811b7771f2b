// The control plane as gRPC calls it: checks every message, finds the session, calls it, answers.
//
// Included by worker/service only: it shows gRPC.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "worker/service/session_table.h"
#include "worker/session/session.h"

namespace weft {

// Called by gRPC's threads, several at a time; a call of a session that loads or computes for long
// holds only its own thread. Everything passed outlives it.
class ControlService final : public proto::Worker::Service {
 public:
  // `hello` says who this worker is; what changes is filled in for each caller.
  ControlService(const WorkerParts& parts, SessionTable& sessions, WorkerHello hello,
                 const Clock& clock)
      : parts_(parts), sessions_(sessions), hello_(std::move(hello)), clock_(clock) {}

  grpc::Status Hello(grpc::ServerContext*, const proto::HelloRequest*, proto::HelloReply*) override;
  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<proto::SessionReply, proto::SessionRequest>*) override;

  grpc::Status OpenEpoch(grpc::ServerContext*, const proto::OpenEpochRequest*,
                         proto::OpenEpochReply*) override;
  grpc::Status ConnectPeers(grpc::ServerContext*, const proto::ConnectPeersRequest*,
                            proto::ConnectPeersReply*) override;

  grpc::Status QuerySupport(grpc::ServerContext*, const proto::QuerySupportRequest*,
                            proto::QuerySupportReply*) override;
  grpc::Status QueryTensorBytes(grpc::ServerContext*, const proto::QueryTensorBytesRequest*,
                                proto::QueryTensorBytesReply*) override;

  grpc::Status AllocateBuffer(grpc::ServerContext*, const proto::AllocateBufferRequest*,
                              proto::AllocateBufferReply*) override;
  grpc::Status FreeBuffer(grpc::ServerContext*, const proto::FreeBufferRequest*,
                          proto::FreeBufferReply*) override;
  grpc::Status FillBuffer(grpc::ServerContext*, const proto::FillBufferRequest*,
                          proto::FillBufferReply*) override;
  grpc::Status WriteBuffer(grpc::ServerContext*, const proto::WriteBufferRequest*,
                           proto::WriteBufferReply*) override;
  grpc::Status ReadBuffer(grpc::ServerContext*, const proto::ReadBufferRequest*,
                          proto::ReadBufferReply*) override;

  grpc::Status LoadWeights(grpc::ServerContext*, const proto::LoadWeightsRequest*,
                           grpc::ServerWriter<proto::LoadWeightsReply>*) override;
  grpc::Status FindWeights(grpc::ServerContext*, const proto::FindWeightsRequest*,
                           proto::FindWeightsReply*) override;
  grpc::Status GiveWeights(grpc::ServerContext*, const proto::GiveWeightsRequest*,
                           proto::GiveWeightsReply*) override;
  grpc::Status TakeWeights(grpc::ServerContext*, const proto::TakeWeightsRequest*,
                           grpc::ServerWriter<proto::TakeWeightsReply>*) override;

  grpc::Status InstallProgram(grpc::ServerContext*, const proto::InstallProgramRequest*,
                              proto::InstallProgramReply*) override;
  grpc::Status Instantiate(grpc::ServerContext*, const proto::InstantiateRequest*,
                           proto::InstantiateReply*) override;
  grpc::Status ReleaseInstance(grpc::ServerContext*, const proto::ReleaseInstanceRequest*,
                               proto::ReleaseInstanceReply*) override;

  grpc::Status MeasureLink(grpc::ServerContext*, const proto::MeasureLinkRequest*,
                           proto::MeasureLinkReply*) override;
  grpc::Status Statistics(grpc::ServerContext*, const proto::StatisticsRequest*,
                          proto::StatisticsReply*) override;
  grpc::Status Drain(grpc::ServerContext*, const proto::DrainRequest*, proto::DrainReply*) override;

 private:
  // The session that a checked request names. Errors: those of CheckMessage; NOT_FOUND.
  template <typename Request>
  absl::StatusOr<std::shared_ptr<weft::Session>> Enter(const Request& request) {
    return EnterSession(request, request.session());
  }
  absl::StatusOr<std::shared_ptr<weft::Session>> EnterSession(
      const google::protobuf::Message& request, int64_t session);

  const WorkerParts& parts_;
  SessionTable& sessions_;
  const WorkerHello hello_;
  const Clock& clock_;
};

}  // namespace weft
