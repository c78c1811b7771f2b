// One epoch over several workers: who is who, all connections of the data plane, and a place to run
// programs on each worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/log.h"
#include "common/program/edge_port.h"
#include "common/transport/transport.h"
#include "rpc_backend/client/remote_program_host.h"
#include "rpc_backend/client/remote_worker.h"

namespace weft {

struct FleetLinkOptions {
  // "auto", or the name of one of `transports` or "grpc", which is always there.
  std::string transport = "auto";
  // This process's, best first: with "auto" the first one that every worker offers is used, and
  // gRPC if it cannot connect. They outlive the link.
  std::vector<Transport*> transports;
  std::chrono::milliseconds timeout{10000};  // to set everything up
  PortLimits limits;
  WireSecurity security;     // of "grpc"
  Logger* logger = nullptr;  // may be null
};

// Two connected processes; numbers as in FleetLink.
struct FleetPair {
  int32_t a = 0;
  int32_t b = 0;
  bool same_host = false;
};

struct PairMeasurement {
  FleetPair pair;
  std::string transport;  // as the connection calls itself: "posix+cma", "tcp", "grpc"
  absl::Status status;    // why there are no figures
  double latency_us = 0;  // one way: half a round trip of a small message
  double bytes_per_s = 0;
};

// Worker i has number i, the coordinator the number of workers. Any thread may call. The workers
// outlive it, and it outlives use of its hosts.
class FleetLink {
 public:
  // Opens the epoch on every worker, then connects each pair once, workers at the same time.
  // Errors name the worker; INVALID_ARGUMENT for no workers or an unknown transport;
  // FAILED_PRECONDITION naming a worker without it.
  static absl::StatusOr<std::unique_ptr<FleetLink>> Open(std::vector<RemoteWorker*> workers,
                                                         const FleetLinkOptions& options);
  ~FleetLink();
  FleetLink(const FleetLink&) = delete;
  FleetLink& operator=(const FleetLink&) = delete;

  int32_t worker_count() const;
  RemoteWorker& worker(int32_t number);
  int32_t coordinator_number() const { return worker_count(); }
  uint32_t epoch() const;
  const std::string& transport() const;  // "ucx", "grpc"
  // "w0", or "coordinator".
  const std::string& name(int32_t number) const;
  RemoteProgramHost& host(int32_t worker);
  MessagePort& port();
  // How programs of this process hand tensors to those of workers.
  EdgePort& edges();
  // The same for what ranks on the coordinator's devices exchange with others.
  EdgePort& collectives();
  absl::Span<const FleetPair> pairs() const;
  // A number that no transfer of weights in this epoch had before.
  int64_t NextTransfer();

  // Probes every pair, one after another, both ends at the same time. While no steps are in flight.
  std::vector<PairMeasurement> MeasureLinks(std::chrono::milliseconds timeout_per_pair);
  // The same for some of pairs().
  std::vector<PairMeasurement> MeasureLinks(absl::Span<const FleetPair> pairs,
                                            std::chrono::milliseconds timeout_per_pair);

  // Ends everything that waits, here, with `reason`. Happens by itself when a worker is lost.
  void Abort(const absl::Status& reason);

 private:
  class Impl;
  explicit FleetLink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
