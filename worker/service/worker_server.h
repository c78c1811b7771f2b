// A worker's gRPC server: the control plane, and the data plane that needs no UCX.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "worker/service/session_table.h"

namespace weft {

class GrpcTls;
class GrpcTransport;

struct WorkerServerOptions {
  HostAddress listen;  // port 0: any
  // Under which others reach this server, where that is not where it listens; an empty host and
  // port 0: as there.
  HostAddress announce;
  WorkerHello hello;
  // The data plane without UCX, which this server serves and tells its address; outlives it.
  GrpcTransport* data = nullptr;
  // Null: plaintext. Not used on a Unix socket. Outlives the server.
  const GrpcTls* tls = nullptr;
  Logger* logger = nullptr;  // of refusals
};

class WorkerServer {
 public:
  // Listens when it returns. All outlive it. Errors: UNAVAILABLE naming the address.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(const WorkerServerOptions& options,
                                                             const WorkerParts& parts,
                                                             SessionTable& sessions,
                                                             const Clock& clock);
  // Ends all calls.
  ~WorkerServer();

  // As listened on: with the port that was taken where 0 was asked for.
  const std::string& address() const { return address_; }
  // What the standard health service (grpc.health.v1) says of this server from now on; at first
  // that it serves. Does nothing after Shutdown.
  void SetServing(bool serving);
  // Ends all sessions with that word, waits for their calls at most so long, then cancels them.
  void Shutdown(const std::string& reason, std::chrono::milliseconds grace);

 private:
  struct Parts;
  WorkerServer();
  // Returns the port.
  absl::StatusOr<int> Listen(const WorkerServerOptions& options, const Clock& clock);

  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace weft
