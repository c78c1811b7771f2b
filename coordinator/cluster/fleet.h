// The workers of one run: connected, linked to each other, their devices in one list.
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
#include "common/device/device.h"
#include "common/program/edge_port.h"
#include "common/transport/transport.h"
#include "coordinator/cluster/fleet_weights.h"
#include "coordinator/cluster/local_workers.h"
#include "coordinator/cluster/worker_directory.h"
#include "coordinator/cluster/worker_search.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

namespace weft {

struct FleetOptions {
  std::vector<std::string> workers;  // addresses
  // In place of `workers`: those behind a name, each called as it was the last time. Outlives the
  // fleet, shared with those before and after it. Null: none.
  std::shared_ptr<WorkerDirectory> directory;
  bool watch = false;  // look whether more of them come: see Fleet::leaving
  // More workers, started and ended with the fleet; after those of `workers`.
  int32_t local_workers = 0;
  LocalWorkersOptions local;
  std::string transport = "auto";  // "auto", "ucx", "grpc"; "tls": gRPC, which `tls` encrypts
  // A worker that is silent for so long is lost, or is not there. Times for setting connections up
  // and for weights on their way follow from it.
  std::chrono::milliseconds loss_after{2500};
  std::string tls;            // folder with certificates; empty: plaintext
  std::string tls_name;       // what those of workers must name; empty: the host of each
  bool insecure = false;      // plaintext to other machines too
  bool ignore_files = false;  // workers get all weights from here, as if they saw no file
};

// The address of a worker as people write it, completed: "10.0.0.2:7000" for "10.0.0.2". Errors:
// INVALID_ARGUMENT naming the text.
absl::StatusOr<std::string> NormalWorkerAddress(std::string_view text);

// Any thread may call.
class Fleet {
 public:
  // Connects to all workers at the same time. Errors name the worker.
  static absl::StatusOr<std::unique_ptr<Fleet>> Open(const FleetOptions& options, Logger& logger);
  ~Fleet();

  int32_t worker_count() const { return static_cast<int32_t>(workers_.size()); }
  RemoteWorker& worker(int32_t index) { return *workers_[index]; }
  // One that knows no detached collectives (kDetachedCollectivesMinor), as people call it; empty:
  // all do.
  std::string WorkerWithoutDetached() const;
  // Of all workers, in the scheduler's order: GPUs, accelerators, CPUs.
  const std::vector<Device*>& devices() const { return devices_; }
  // Process i of a plan: the workers by number, then this process.
  const std::vector<std::string>& hosts() const { return hosts_; }
  FleetLink& link() { return *link_; }
  // How programs of this process hand tensors to those of workers.
  EdgePort& edges() { return link_->edges(); }
  EdgePort& collectives() { return link_->collectives(); }
  FleetWeights& weights() { return *weights_; }
  // The first worker that was lost, or OK.
  absl::Status lost() const;
  // UNAVAILABLE naming the first worker that drains, or those that a watched directory has beyond
  // this fleet's; or OK.
  absl::Status leaving() const;
  // `error`, or what it follows from: the loss of a worker, or one that could not be asked what its
  // devices support. OK stays OK.
  absl::Status Explain(const absl::Status& error) const;

 private:
  explicit Fleet(Logger& logger) : logger_(logger) {}
  RemoteWorkerOptions WorkerOptions(const FleetOptions& options) const;
  // Fills addresses_ and names_.
  absl::Status FindAddresses(const FleetOptions& options);
  absl::Status OpenSecurity(const FleetOptions& options);
  absl::Status ConnectWorkers(const FleetOptions& options);
  absl::Status StartWatch(const FleetOptions& options);
  absl::Status CheckDistinct() const;
  absl::Status OpenLink(const FleetOptions& options);

  Logger& logger_;
  WireSecurity security() const { return {.tls = tls_.get(), .insecure = insecure_}; }

  std::unique_ptr<GrpcTls> tls_;
  bool insecure_ = false;
  std::vector<std::string> addresses_;  // of workers, as they are connected to
  std::vector<std::string> names_;
  std::shared_ptr<WorkerDirectory> directory_;  // shared with the fleets before and after
  std::unique_ptr<LocalWorkers> local_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<RemoteWorker>> workers_;
  std::vector<Device*> devices_;
  std::vector<std::string> hosts_;
  std::unique_ptr<FleetLink> link_;
  std::unique_ptr<FleetWeights> weights_;
  std::unique_ptr<WorkerWatch> watch_;
};

}  // namespace weft
