#include "rpc_backend/membership/join_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/refusal_log.h"
#include "common/base/status_macros.h"
#include "proto/membership.grpc.pb.h"
#include "rpc_backend/membership/join_guard.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/grpc_status.h"
#include "rpc_backend/protocol/grpc_tls/gated_port.h"

namespace weft {
namespace {

// Messages are a few hundred bytes.
constexpr int kMaxMessageBytes = 16 << 10;
constexpr int kMaxThreads = 64;
// Of a connection without a call; workers call more often.
constexpr std::chrono::milliseconds kIdleTime{20000};

// Called by gRPC's threads.
class MembershipService final : public proto::Membership::Service {
 public:
  MembershipService(std::unique_ptr<JoinGuard> guard, JoinServer::Admit admit, GatedPort& port,
                    Logger* logger, const Clock& clock)
      : guard_(std::move(guard)),
        admit_(std::move(admit)),
        port_(port),
        refusals_(logger, clock, "a join") {}

  grpc::Status Challenge(grpc::ServerContext*, const proto::ChallengeRequest*,
                         proto::ChallengeReply* reply) override {
    const absl::StatusOr<PeerNonce> challenge = guard_->Challenge();
    if (!challenge.ok()) return ToGrpc(challenge.status());
    reply->set_challenge(std::string(ViewOf(*challenge)));
    return grpc::Status::OK;
  }

  grpc::Status Join(grpc::ServerContext* context, const proto::JoinRequest* request,
                    proto::JoinReply* reply) override {
    const absl::Status status = Take(*request, *reply, context->peer());
    if (status.ok()) return grpc::Status::OK;
    MutexLock lock(mutex_);
    refusals_.Add(context->peer(), StdView(status.message()));
    return ToGrpc(status);
  }

 private:
  absl::Status Take(const proto::JoinRequest& request, proto::JoinReply& reply,
                    const std::string& peer) {
    ASSIGN_OR_RETURN(const DecodedJoin join, DecodeJoin(request));
    // Before anything else is thought of it.
    ASSIGN_OR_RETURN(const PeerMac proof, guard_->Check(join.attempt, join.proof));
    port_.SetKnown(peer);
    ASSIGN_OR_RETURN(const std::chrono::milliseconds lease, admit_(join.attempt.claim));
    reply.set_proof(std::string(ViewOf(proof)));
    reply.set_lease_ms(lease.count());
    return absl::OkStatus();
  }

  const std::unique_ptr<JoinGuard> guard_;
  const JoinServer::Admit admit_;
  GatedPort& port_;
  Mutex mutex_;
  RefusalLog refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct JoinServer::Parts {
  std::unique_ptr<GatedPort> port;
  std::unique_ptr<MembershipService> service;
  std::unique_ptr<grpc::Server> server;

  absl::Status Serve(const HostAddress& listen);
};

JoinServer::JoinServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<JoinServer>> JoinServer::Start(const JoinServerOptions& options,
                                                              std::unique_ptr<JoinToken> token,
                                                              Admit admit, const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<JoinGuard> guard, JoinGuard::Create(std::move(token), clock));
  auto parts = std::make_unique<Parts>();
  ASSIGN_OR_RETURN(parts->port,
                   GatedPort::Listen(options.listen, options.tls, clock, *options.logger));
  parts->service = std::make_unique<MembershipService>(std::move(guard), std::move(admit),
                                                       *parts->port, options.logger, clock);
  RETURN_IF_ERROR(parts->Serve(options.listen));
  HostAddress address = options.listen;
  address.port = parts->port->port();
  std::unique_ptr<JoinServer> made(new JoinServer(std::move(parts)));
  made->address_ = address.Text();
  return made;
}

absl::Status JoinServer::Parts::Serve(const HostAddress& listen) {
  grpc::ServerBuilder builder;
  RefuseCompressed(builder);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  grpc::ResourceQuota quota("joins");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(kIdleTime.count()));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMessageBytes);
  port->AddTo(builder);
  builder.RegisterService(service.get());
  server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot serve on ", listen.Text()));
  }
  return port->Start();
}

JoinServer::~JoinServer() {
  if (parts_->server == nullptr) return;
  parts_->port->Stop();
  parts_->server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  parts_->server->Wait();
}

}  // namespace weft
