// One worker process: its devices, its sessions and its server, from start to exit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/http/metrics_access.h"
#include "common/http/probe_server.h"
#include "common/tls/certificate_watch.h"
#include "common/transport/transport.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "worker/device_discovery.h"
#include "worker/joiner.h"
#include "worker/listen_address.h"
#include "worker/service/worker_server.h"
#include "worker/session/session.h"
#include "worker/worker_options.h"

namespace weft {

// What stands between sessions and UCX, for tests.
using TransportWrapper = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

class Worker {
 public:
  // Serves when it returns. `factory` and `wrap_ucx` may be empty; `logger` outlives the worker.
  // Errors: INVALID_ARGUMENT naming the flag; UNAVAILABLE for an address; those of the devices and
  // the cache. What a device fails in its self-test is logged and quarantined.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(WorkerOptions options,
                                                       const DeviceFactory& factory, Logger& logger,
                                                       const TransportWrapper& wrap_ucx = {});
  ~Worker();

  const std::string& address() const { return server_->address(); }
  const std::vector<Device*>& devices() const { return parts_.devices; }
  // 0: it has no probe port.
  int metrics_port() const { return probes_ == nullptr ? 0 : probes_->port(); }
  // Sessions whose coordinator is silent end, and the health service learns whether more are
  // accepted; to be called several times per lease.
  void CheckSessions();
  // No new sessions; those that are open go on, and their coordinators are told.
  void Drain();
  int32_t sessions() const { return sessions_->count(); }
  // Waits until at most so many are open; false: not by then.
  bool AwaitSessions(int32_t most, Clock::TimePoint deadline) const {
    return sessions_->AwaitCount(most, deadline);
  }

 private:
  explicit Worker(Logger& logger) : logger_(logger) {}
  // Tests every device. Those that hang are left out for good.
  absl::Status TestDevices();
  // And says what is encrypted, and what is not.
  absl::Status OpenSecurity(const WorkerOptions& options, const ListenAddress& address);
  absl::Status OpenTransports(const WorkerOptions& options, const ListenAddress& address,
                              const TransportWrapper& wrap_ucx);
  absl::StatusOr<WorkerHello> MakeHello(const WorkerOptions& options) const;
  absl::Status OpenProbes(const WorkerOptions& options);
  absl::Status StartJoining(const WorkerOptions& options, const WorkerServerOptions& server);

  Logger& logger_;
  const SystemClock clock_;
  WorkerDevices devices_;
  std::unique_ptr<GrpcTls> tls_;                 // null: plaintext
  std::unique_ptr<CertificateWatch> tls_watch_;  // with it
  std::unique_ptr<ModelFiles> files_;
  std::unique_ptr<WeightCache> cache_;
  std::unique_ptr<Transport> ucx_;  // null where it is absent or refused
  std::unique_ptr<GrpcTransport> grpc_;
  WorkerMeter meter_;
  WorkerParts parts_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<WorkerServer> server_;
  std::unique_ptr<Joiner> joiner_;  // null: without --join
  std::unique_ptr<MetricsAccess> metrics_access_;
  std::unique_ptr<ProbeServer> probes_;
};

// Runs a worker until SIGTERM or SIGINT; returns the exit code.
int RunWorker(const WorkerOptions& options, const DeviceFactory& factory, Logger& logger,
              const TransportWrapper& wrap_ucx = {});

}  // namespace weft
