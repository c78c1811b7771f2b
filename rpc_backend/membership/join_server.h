// Where workers join a coordinator: a gRPC server behind a gate. What strangers can make it do is
// bounded: connections, bytes, threads, time; without the token nothing is remembered of them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "rpc_backend/membership/join_claim.h"

namespace weft {

class GrpcTls;

struct JoinServerOptions {
  HostAddress listen;  // no Unix socket; port 0: any
  // Null: plaintext. Outlives the server, as the logger does.
  const GrpcTls* tls = nullptr;
  Logger* logger = nullptr;
};

class JoinServer {
 public:
  // Decides about a worker whose proof is right, and returns how long it is then a member. Called
  // by several threads at a time.
  using Admit = std::function<absl::StatusOr<std::chrono::milliseconds>(const JoinClaim& claim)>;

  // Serves when it returns. `clock` outlives it. Errors: UNAVAILABLE naming the address; INTERNAL.
  static absl::StatusOr<std::unique_ptr<JoinServer>> Start(const JoinServerOptions& options,
                                                           std::unique_ptr<JoinToken> token,
                                                           Admit admit, const Clock& clock);
  // Ends all calls.
  ~JoinServer();

  // With the port that was taken where 0 was asked for.
  const std::string& address() const { return address_; }

 private:
  struct Parts;
  explicit JoinServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace weft
