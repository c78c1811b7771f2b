// The two ends of a gRPC stream between ports. Both live until gRPC is done with them, whatever
// becomes of their port. Included by sources of this folder only.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "common/base/host_address.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/grpc_transport/port_core.h"

namespace weft {

// The end that connected.
class ClientDataStream final
    : public DataStream,
      private grpc::ClientBidiReactor<proto::DataMessage, proto::DataMessage> {
 public:
  // Where a port is: "10.0.0.2:7000/000000000000002a".
  struct Place {
    std::string text;
    std::string target;  // as gRPC takes it
    HostAddress server;
    int64_t number = 0;
  };
  // Opens a stream to that port and says hello there. `core` was told of the peer.
  static void Start(std::shared_ptr<GrpcPortCore> core, const PortPeer& peer, const Place& place,
                    const PeerNonce& nonce,
                    const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  void StartFrame(const proto::DataMessage& frame) override { StartWrite(&frame); }
  void Cancel() override { context_.TryCancel(); }

 private:
  ClientDataStream(std::shared_ptr<GrpcPortCore> core, int32_t peer, const std::string& target,
                   const std::shared_ptr<grpc::ChannelCredentials>& credentials);

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

  // The first frame.
  void TakeHello();
  // The second one.
  void TakeProof();
  void Refuse(const absl::Status& why);
  // Ends the stream if it has not proved itself by then.
  void StartTimer();
  void StopTimer();
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

  const std::shared_ptr<GrpcPortRegistry> registry_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<GrpcPortCore> core_;  // null before the proof, and where it was refused
  int32_t peer_ = -1;
  std::shared_ptr<GrpcPortCore> greeted_;  // the port of the hello, until the proof
  PeerHandshake handshake_;
  proto::DataMessage challenge_;  // being written
  // What the timer finds: this stream, or nothing once it is proven or over.
  struct Watched {
    Mutex mutex;
    ServerDataStream* stream ABSL_GUARDED_BY(mutex) = nullptr;
  };
  const std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();  // shared with the timer
  grpc::Alarm timer_;
  proto::DataMessage frame_;  // being read
  Mutex mutex_;               // inside that of the core
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ServerDataStream> self_;  // until OnDone
};

}  // namespace weft
