#include "rpc_backend/membership/join_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tls/connection_gate.h"
#include "common/transport/strangers.h"
#include "proto/membership.grpc.pb.h"
#include "rpc_backend/membership/join_guard.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

namespace weft {
namespace {

// Messages are a few hundred bytes.
constexpr int kMaxMessageBytes = 16 << 10;
constexpr int kMaxThreads = 64;
// Of a connection without a call; workers call more often.
constexpr std::chrono::milliseconds kIdleTime{20000};

grpc::Status WireStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Called by gRPC's threads.
class MembershipService final : public proto::Membership::Service {
 public:
  MembershipService(std::unique_ptr<JoinGuard> guard, JoinServer::Admit admit, Logger* logger,
                    const Clock& clock)
      : guard_(std::move(guard)), admit_(std::move(admit)), refusals_(logger, clock, "a join") {}

  grpc::Status Challenge(grpc::ServerContext*, const proto::ChallengeRequest*,
                         proto::ChallengeReply* reply) override {
    const absl::StatusOr<PeerNonce> challenge = guard_->Challenge();
    if (!challenge.ok()) return WireStatus(challenge.status());
    reply->set_challenge(std::string(ViewOf(*challenge)));
    return grpc::Status::OK;
  }

  grpc::Status Join(grpc::ServerContext* context, const proto::JoinRequest* request,
                    proto::JoinReply* reply) override {
    const absl::Status status = Take(*request, *reply);
    if (status.ok()) return grpc::Status::OK;
    MutexLock lock(mutex_);
    refusals_.Add(context->peer(), StdView(status.message()));
    return WireStatus(status);
  }

 private:
  absl::Status Take(const proto::JoinRequest& request, proto::JoinReply& reply) {
    ASSIGN_OR_RETURN(const DecodedJoin join, DecodeJoin(request));
    // Before anything else is thought of it.
    ASSIGN_OR_RETURN(const PeerMac proof, guard_->Check(join.attempt, join.proof));
    ASSIGN_OR_RETURN(const std::chrono::milliseconds lease, admit_(join.attempt.claim));
    reply.set_proof(std::string(ViewOf(proof)));
    reply.set_lease_ms(lease.count());
    return absl::OkStatus();
  }

  const std::unique_ptr<JoinGuard> guard_;
  const JoinServer::Admit admit_;
  Mutex mutex_;
  RefusalLog refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct JoinServer::Parts {
  std::unique_ptr<MembershipService> service;
  std::unique_ptr<grpc::Server> server;
  // In front of gRPC; goes first.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<ConnectionGate> gate;

  absl::Status Listen(const JoinServerOptions& options, const Clock& clock);
};

JoinServer::JoinServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<JoinServer>> JoinServer::Start(const JoinServerOptions& options,
                                                              std::unique_ptr<JoinToken> token,
                                                              Admit admit, const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<JoinGuard> guard, JoinGuard::Create(std::move(token), clock));
  std::unique_ptr<JoinServer> made(new JoinServer(std::make_unique<Parts>()));
  made->parts_->service = std::make_unique<MembershipService>(std::move(guard), std::move(admit),
                                                              options.logger, clock);
  RETURN_IF_ERROR(made->parts_->Listen(options, clock));
  HostAddress address = options.listen;
  address.port = made->parts_->gate->port();
  made->address_ = address.Text();
  return made;
}

absl::Status JoinServer::Parts::Listen(const JoinServerOptions& options, const Clock& clock) {
  using ConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const GateLimits limits;
  const GateProtocol protocol =
      options.tls == nullptr ? GateProtocol::kHttp2 : GateProtocol::kTls13;
  ASSIGN_OR_RETURN(
      gate, ConnectionGate::Listen(options.listen, limits, clock, *options.logger, protocol));
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("joins");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits.handshake.count()));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(kIdleTime.count()));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMessageBytes);
  Logger* const logger = options.logger;
  acceptor = builder.experimental().AddExternalConnectionAcceptor(
      ConnectionType::FROM_FD, options.tls == nullptr
                                   ? grpc::InsecureServerCredentials()
                                   : options.tls->ForServer([logger](const std::string& why) {
                                       logger->Warning(absl::StrCat("refused a call: ", why));
                                     }));
  builder.RegisterService(service.get());
  server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot serve on ", options.listen.Text()));
  }
  return gate->Start([raw = acceptor.get()](int descriptor, const std::string& first) {
    const grpc::Slice slice(first);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    raw->HandleNewConnection(&connection);
  });
}

JoinServer::~JoinServer() {
  if (parts_->gate != nullptr) parts_->gate->Stop();
  if (parts_->server == nullptr) return;
  parts_->server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  parts_->server->Wait();
}

}  // namespace weft
