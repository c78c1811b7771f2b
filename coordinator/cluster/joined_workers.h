// Workers that come by themselves (--workers-join): the port where they join, and who is a member.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/member_list.h"
#include "rpc_backend/membership/join_server.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

namespace weft {

struct JoinedWorkersOptions {
  HostAddress listen;      // no Unix socket
  std::string token_file;  // of both sides
  // As FleetOptions; plaintext is for loopback addresses, or with `insecure`.
  std::string tls;
  bool insecure = false;
  // A worker that does not join again by then is gone.
  std::chrono::milliseconds lease{15000};
  // A worker must answer within so long at the address that it gives.
  std::chrono::milliseconds answer_within{2500};
};

// Any thread may call.
class JoinedWorkers {
 public:
  // Workers can join when it returns. `logger` outlives it. Errors: INVALID_ARGUMENT for an address
  // that others reach without TLS; those of JoinToken, GrpcTls and JoinServer.
  static absl::StatusOr<std::unique_ptr<JoinedWorkers>> Open(JoinedWorkersOptions options,
                                                             Logger& logger);
  ~JoinedWorkers();

  // Where it listens, with the port that was taken.
  const std::string& address() const { return server_->address(); }
  // Of those whose leases are good. UNAVAILABLE where there is none.
  absl::StatusOr<std::vector<std::string>> Addresses();

 private:
  JoinedWorkers(JoinedWorkersOptions options, Logger& logger)
      : options_(std::move(options)), logger_(logger) {}
  absl::StatusOr<std::chrono::milliseconds> Admit(const JoinClaim& claim);
  // That the worker is where it says it is.
  absl::Status ConnectBack(const JoinClaim& claim) const;
  void DropExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JoinedWorkersOptions options_;
  Logger& logger_;
  const SystemClock clock_;
  std::unique_ptr<GrpcTls> tls_;
  Mutex mutex_;
  MemberList members_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<JoinServer> server_;  // goes first
};

}  // namespace weft
