#include "coordinator/cluster/joined_workers.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tls/host_reach.h"
#include "coordinator/cluster/worker_search.h"
#include "rpc_backend/client/remote_worker.h"

namespace weft {
namespace {

std::string TextOf(const std::string& name, const std::string& address) {
  return absl::StrCat("worker '", name, "' (", address, ")");
}

absl::Status CheckListenReach(const JoinedWorkersOptions& options) {
  const std::string text = options.listen.Text();
  if (options.listen.host.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': want ADDR:PORT"));
  }
  const absl::StatusOr<bool> loopback = IsLoopbackHost(options.listen.host);
  if (!loopback.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", loopback.status().message()));
  }
  if (*loopback || options.insecure || !options.tls.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "': nothing would be encrypted between workers and here; pass --tls DIR ('weft ",
      "certs --help' says how to make one), or --insecure on a network that you trust"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JoinedWorkers>> JoinedWorkers::Open(JoinedWorkersOptions options,
                                                                   Logger& logger) {
  RETURN_IF_ERROR(CheckListenReach(options));
  ASSIGN_OR_RETURN(std::unique_ptr<JoinToken> token, JoinToken::Open(options.token_file, &logger));
  auto made = absl::WrapUnique(new JoinedWorkers(std::move(options), logger));
  if (!made->options_.tls.empty()) {
    ASSIGN_OR_RETURN(made->tls_, GrpcTls::Open(made->options_.tls, TlsRole::kCoordinator));
  }
  JoinServerOptions server;
  server.listen = made->options_.listen;
  server.tls = made->tls_.get();
  server.logger = &logger;
  ASSIGN_OR_RETURN(
      made->server_,
      JoinServer::Start(
          server, std::move(token),
          [raw = made.get()](const JoinClaim& claim) { return raw->Admit(claim); }, made->clock_));
  logger.Info(StdView(absl::StrCat("workers may join at ", made->address())));
  return made;
}

JoinedWorkers::~JoinedWorkers() { server_.reset(); }

absl::Status JoinedWorkers::ConnectBack(const JoinClaim& claim) const {
  const std::string label = TextOf(claim.name, claim.address);
  const absl::StatusOr<HostAddress> address = ParseHostAddress(claim.address, 0, 1);
  if (!address.ok() || address->host.empty() || address->port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": want an address HOST:PORT"));
  }
  RemoteWorkerOptions worker;
  worker.name = "at";
  worker.address = claim.address;
  worker.security = {.tls = tls_.get(), .insecure = options_.insecure};
  worker.connect_timeout = options_.answer_within;
  const absl::StatusOr<RemoteWorkerInfo> info = RemoteWorker::Ask(std::move(worker));
  if (!info.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(label, " cannot be used from here: ", info.status().message(),
                     "; its --listen or --announce must lead to it from this machine"));
  }
  if (info->incarnation != claim.incarnation || info->host_identity != claim.host_identity) {
    return absl::PermissionDeniedError(
        absl::StrCat(label, ": at this address answers another worker, '", info->name, "'"));
  }
  if (!info->draining) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(label, " is draining"));
}

absl::StatusOr<std::chrono::milliseconds> JoinedWorkers::Admit(const JoinClaim& claim) {
  const std::string identity = IdentityText(claim.host_identity, claim.incarnation);
  const std::string label = TextOf(claim.name, claim.address);
  {
    MutexLock lock(mutex_);
    DropExpired();
    if (claim.leaving) {
      if (members_.Remove(identity)) logger_.Info(StdView(absl::StrCat(label, " has left")));
      return std::chrono::milliseconds(0);
    }
    if (members_.Renew(identity, claim.address, clock_.Now() + options_.lease)) {
      return options_.lease;
    }
  }
  RETURN_IF_ERROR(ConnectBack(claim));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(
      members_.Put({identity, claim.name, claim.address, clock_.Now() + options_.lease}));
  logger_.Info(StdView(absl::StrCat(label, " has joined")));
  return options_.lease;
}

void JoinedWorkers::DropExpired() {
  for (const Member& member : members_.TakeExpired(clock_.Now())) {
    logger_.Warning(StdView(absl::StrCat(TextOf(member.name, member.address),
                                         " is gone: it has not joined again in time")));
  }
}

absl::StatusOr<std::vector<std::string>> JoinedWorkers::Addresses() {
  MutexLock lock(mutex_);
  DropExpired();
  if (members_.size() > 0) return members_.Addresses();
  return absl::UnavailableError(absl::StrCat("no worker has joined at ", address()));
}

}  // namespace weft
