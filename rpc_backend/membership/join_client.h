// A worker's side of joining a coordinator.
#pragma once

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/host_address.h"
#include "common/base/mutex.h"
#include "rpc_backend/membership/join_claim.h"
#include "rpc_backend/protocol/grpc_tls/wire_security.h"

namespace grpc {
class ClientContext;
}

namespace weft {

struct JoinClientOptions {
  HostAddress coordinator;
  WireSecurity security;
  // Of each of the two calls; the coordinator connects back in the second.
  std::chrono::milliseconds timeout{8000};
};

class JoinClient {
 public:
  // Connects with the first join. Errors: those of CredentialsTowards.
  static absl::StatusOr<std::unique_ptr<JoinClient>> Create(const JoinClientOptions& options);
  ~JoinClient();

  // Joins (or leaves) once; returns for how long the worker is a member. Errors say why not:
  // UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED; what the coordinator said; PERMISSION_DENIED for one
  // that does not have the token.
  absl::StatusOr<std::chrono::milliseconds> Join(const SessionKey& key, const JoinClaim& claim);
  // Ends a Join that is under way, and those that come. Any thread.
  void Cancel();

 private:
  struct Stub;
  JoinClient(const JoinClientOptions& options, std::unique_ptr<Stub> stub);
  // `call` starts the call with that context.
  template <typename Function>
  absl::Status Run(Function call);
  absl::Status Explain(const absl::Status& error) const;

  const JoinClientOptions options_;
  const std::unique_ptr<Stub> stub_;
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace weft
