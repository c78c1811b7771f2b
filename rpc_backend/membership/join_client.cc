#include "rpc_backend/membership/join_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/tls/tls_probe.h"
#include "proto/membership.grpc.pb.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"
#include "rpc_backend/protocol/message_check.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {
namespace {

constexpr int kMaxMessageBytes = 16 << 10;
constexpr std::chrono::milliseconds kProbeTime{1000};
// Between attempts to connect; whoever joins decides when.
constexpr int kReconnectMs = 500;

}  // namespace

struct JoinClient::Stub {
  std::unique_ptr<proto::Membership::Stub> stub;
};

JoinClient::JoinClient(const JoinClientOptions& options, std::unique_ptr<Stub> stub)
    : options_(options), stub_(std::move(stub)) {}

JoinClient::~JoinClient() = default;

absl::StatusOr<std::unique_ptr<JoinClient>> JoinClient::Create(const JoinClientOptions& options) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsTowards(options.security, options.coordinator,
                                                              TlsRole::kCoordinator));
  grpc::ChannelArguments arguments = OwnConnection();
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  auto stub = std::make_unique<Stub>();
  stub->stub = proto::Membership::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("dns:///", options.coordinator.Text()), credentials, arguments));
  return absl::WrapUnique(new JoinClient(options, std::move(stub)));
}

template <typename Function>
absl::Status JoinClient::Run(Function call) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadlineIn(options_.timeout));
  {
    MutexLock lock(mutex_);
    if (cancelled_) return absl::CancelledError("cancelled");
    running_ = &context;
  }
  const grpc::Status status = call(context);
  MutexLock lock(mutex_);
  running_ = nullptr;
  if (cancelled_) return absl::CancelledError("cancelled");
  return status.ok() ? absl::OkStatus()
                     : StatusFromWire(status.error_code(), status.error_message());
}

void JoinClient::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  if (running_ != nullptr) running_->TryCancel();
}

absl::Status JoinClient::Explain(const absl::Status& error) const {
  if (!absl::IsUnavailable(error) && !absl::IsDeadlineExceeded(error)) return error;
  const GrpcTls* const tls = options_.security.tls;
  const SystemClock clock;
  const TlsExplanation why =
      ExplainTlsFailure(options_.coordinator, {TlsRole::kCoordinator, ""},
                        tls == nullptr ? nullptr : &tls->folder(), clock, clock.Now() + kProbeTime);
  return why.text.empty() ? error : absl::Status(error.code(), why.text);
}

absl::StatusOr<std::chrono::milliseconds> JoinClient::Join(const SessionKey& key,
                                                           const JoinClaim& claim) {
  const proto::ChallengeRequest nothing;
  proto::ChallengeReply challenge;
  RETURN_IF_ERROR(Explain(Run([&](grpc::ClientContext& context) {
    return stub_->stub->Challenge(&context, nothing, &challenge);
  })));
  RETURN_IF_ERROR(CheckMessage(challenge));
  JoinAttempt attempt;
  attempt.claim = claim;
  ASSIGN_OR_RETURN(attempt.nonce, NewPeerNonce());
  std::copy_n(challenge.challenge().begin(), attempt.challenge.size(), attempt.challenge.begin());
  ASSIGN_OR_RETURN(const PeerMac proof, ProveJoin(key, PeerSide::kConnector, attempt));
  proto::JoinRequest request;
  proto::JoinReply reply;
  EncodeJoin(attempt, proof, request);
  RETURN_IF_ERROR(Run(
      [&](grpc::ClientContext& context) { return stub_->stub->Join(&context, request, &reply); }));
  RETURN_IF_ERROR(CheckMessage(reply));
  if (!IsJoinProof(key, PeerSide::kListener, attempt, reply.proof())) {
    return absl::PermissionDeniedError(
        "it let this worker join without a proof that it has the token: it is another coordinator");
  }
  return std::chrono::milliseconds(reply.lease_ms());
}

}  // namespace weft
