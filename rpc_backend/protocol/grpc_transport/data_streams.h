// The two ends of a gRPC stream between ports. Both live until gRPC is done with them, whatever
// becomes of their port. Included by sources of this folder only.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/grpc_transport/port_core.h"

namespace weft {

// The end that connected.
class ClientDataStream final
    : public DataStream,
      private grpc::ClientBidiReactor<proto::DataMessage, proto::DataMessage> {
 public:
  // Opens a stream to the server at `target` and says hello there to `port`. `core` was told of the
  // peer.
  static void Start(std::shared_ptr<GrpcPortCore> core, const PortPeer& peer, int64_t port,
                    const std::string& target);

  void StartFrame(const proto::DataMessage& frame) override { StartWrite(&frame); }
  void Cancel() override { context_.TryCancel(); }

 private:
  ClientDataStream(std::shared_ptr<GrpcPortCore> core, int32_t peer, const std::string& target);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const std::shared_ptr<GrpcPortCore> core_;
  const int32_t peer_;
  std::unique_ptr<proto::WorkerData::Stub> stub_;
  grpc::ClientContext context_;
  proto::DataMessage frame_;                // being read
  std::unique_ptr<ClientDataStream> self_;  // until OnDone
};

// The end that was connected to.
class ServerDataStream final
    : public DataStream,
      public grpc::ServerBidiReactor<proto::DataMessage, proto::DataMessage> {
 public:
  // gRPC has it from then on.
  static ServerDataStream* Start(std::shared_ptr<GrpcPortRegistry> registry,
                                 grpc::CallbackServerContext& context);

  void StartFrame(const proto::DataMessage& frame) override;
  void Cancel() override { context_.TryCancel(); }

 private:
  ServerDataStream(std::shared_ptr<GrpcPortRegistry> registry, grpc::CallbackServerContext& context)
      : registry_(std::move(registry)), context_(context) {}

  void TakeHello();
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

  const std::shared_ptr<GrpcPortRegistry> registry_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<GrpcPortCore> core_;  // null before the hello, and where it was refused
  int32_t peer_ = -1;
  proto::DataMessage frame_;  // being read
  Mutex mutex_;               // inside that of the core
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ServerDataStream> self_;  // until OnDone
};

}  // namespace weft
