#include "coordinator/cluster/fleet.h"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/clock.h"
#include "common/base/error_scope.h"
#include "common/base/host_address.h"
#include "common/base/mutex.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/transport/own_address.h"
#include "common/transport/ucx/ucx_transport.h"
#include "coordinator/cluster/worker_search.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kQuietStart{1000};

// GPUs before accelerators before CPUs (decision 4).
int Rank(const Device& device) {
  switch (device.kind()) {
    case DeviceKind::kGpu:
    case DeviceKind::kMeta:
      return 0;
    case DeviceKind::kAccelerator:
      return 1;
    case DeviceKind::kCpu:
      return 2;
  }
  return 2;
}

// Connections to other machines leave by the interfaces that lead to them; where all workers are on
// this machine nobody else can connect.
UcxTransportOptions UcxOptionsFor(const std::vector<std::unique_ptr<RemoteWorker>>& workers) {
  UcxTransportOptions ucx;
  for (const std::unique_ptr<RemoteWorker>& worker : workers) {
    const std::string& host = worker->address().host;
    if (host.empty()) continue;  // a socket
    absl::StatusOr<std::string> own = OwnAddressTowards(host);
    if (!own.ok() || *own == "::1" || absl::StartsWith(*own, "127.")) continue;
    if (ucx.more_own_addresses.empty()) ucx.bind_host = *own;
    ucx.more_own_addresses.push_back(*std::move(own));
  }
  return ucx;
}

// Says once what a start waits for, if it takes long.
class SlowStartNotice {
 public:
  explicit SlowStartNotice(Logger& logger) : logger_(logger) {}
  ~SlowStartNotice() {
    {
      MutexLock lock(mutex_);
      over_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }

  void Expect(std::string name) {
    MutexLock lock(mutex_);
    missing_.push_back(std::move(name));
  }
  absl::Status Start() {
    ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
    return absl::OkStatus();
  }
  void Reached(const std::string& name) {
    MutexLock lock(mutex_);
    missing_.erase(std::remove(missing_.begin(), missing_.end(), name), missing_.end());
  }

 private:
  void Run() {
    const Clock::TimePoint deadline = SystemClock().Now() + kQuietStart;
    MutexLock lock(mutex_);
    while (!over_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (over_ || missing_.empty()) return;
    logger_.Info(StdView(absl::StrCat("connecting to ", absl::StrJoin(missing_, ", "), " ...")));
  }

  Logger& logger_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> missing_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::string> NormalWorkerAddress(std::string_view text) {
  ASSIGN_OR_RETURN(const HostAddress address, ParseHostAddress(text, kDefaultWorkerPort));
  return address.Text();
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Open(const FleetOptions& options, Logger& logger) {
  std::unique_ptr<Fleet> fleet(new Fleet(logger));
  RETURN_IF_ERROR(fleet->OpenSecurity(options));
  RETURN_IF_ERROR(fleet->ConnectWorkers(options));
  RETURN_IF_ERROR(fleet->OpenLink(options));
  fleet->weights_ = std::make_unique<FleetWeights>(*fleet->link_, options.ignore_files, logger);
  RETURN_IF_ERROR(fleet->StartWatch(options));
  return fleet;
}

Fleet::~Fleet() = default;

absl::Status Fleet::OpenSecurity(const FleetOptions& options) {
  insecure_ = options.insecure;
  if (!options.tls.empty()) {
    ASSIGN_OR_RETURN(tls_, GrpcTls::Open(options.tls, TlsRole::kCoordinator, &logger_));
  } else if (options.insecure) {
    logger_.Warning(
        "--insecure: what goes to workers on other machines is not encrypted, and they may be "
        "anybody");
  }
  return absl::OkStatus();
}

RemoteWorkerOptions Fleet::WorkerOptions(const FleetOptions& options) const {
  RemoteWorkerOptions worker;
  worker.security = {.tls = tls_.get(), .insecure = insecure_};
  worker.tls_name = options.tls_name;
  worker.loss_after = options.loss_after;
  worker.connect_timeout = options.loss_after;
  worker.stall_timeout = 4 * options.loss_after;
  worker.ping_period = std::min(worker.ping_period, options.loss_after / 2);
  return worker;
}

absl::Status Fleet::FindAddresses(const FleetOptions& options) {
  if (options.directory == nullptr) {
    addresses_ = options.workers;
  } else {
    directory_ = options.directory;
    const Clock::TimePoint deadline = SystemClock().Now() + 4 * options.loss_after;
    ASSIGN_OR_RETURN(const std::vector<NumberedWorker> found,
                     FindWorkers(*directory_, WorkerOptions(options), deadline, logger_));
    for (const NumberedWorker& worker : found) {
      addresses_.push_back(worker.worker.address);
      names_.push_back(absl::StrCat("w", worker.number));
    }
  }
  if (local_ != nullptr) {
    addresses_.insert(addresses_.end(), local_->addresses().begin(), local_->addresses().end());
  }
  for (size_t i = names_.size(); i < addresses_.size(); ++i) names_.push_back(absl::StrCat("w", i));
  return absl::OkStatus();
}

absl::Status Fleet::ConnectWorkers(const FleetOptions& options) {
  SlowStartNotice notice(logger_);
  if (options.local_workers > 0) {
    notice.Expect(absl::StrCat(options.local_workers, " local workers"));
  }
  const std::string behind = options.directory == nullptr ? "" : options.directory->description();
  if (!behind.empty()) notice.Expect(behind);
  for (const std::string& address : options.workers) notice.Expect(address);
  RETURN_IF_ERROR(notice.Start());
  if (options.local_workers > 0) {
    LocalWorkersOptions local = options.local;
    local.count = options.local_workers;
    local.transport = options.transport;
    ASSIGN_OR_RETURN(local_, LocalWorkers::Spawn(local));
    notice.Reached(absl::StrCat(options.local_workers, " local workers"));
  }
  RETURN_IF_ERROR(FindAddresses(options));
  notice.Reached(behind);
  std::vector<absl::StatusOr<std::unique_ptr<RemoteWorker>>> connected;
  connected.reserve(addresses_.size());
  for (size_t i = 0; i < addresses_.size(); ++i) connected.emplace_back(absl::UnknownError(""));
  RETURN_IF_ERROR(RunParallel(addresses_.size(), [&](size_t i) {
    RemoteWorkerOptions worker = WorkerOptions(options);
    worker.name = names_[i];
    worker.address = addresses_[i];
    connected[i] = RemoteWorker::Connect(worker, &logger_);
    notice.Reached(addresses_[i]);
    return absl::OkStatus();  // below, in order
  }));
  for (absl::StatusOr<std::unique_ptr<RemoteWorker>>& worker : connected) {
    // One that is not there is as good as lost.
    if (absl::IsUnavailable(worker.status()) || absl::IsDeadlineExceeded(worker.status())) {
      return WithScope(worker.status(), ErrorScope::kWorker);
    }
    RETURN_IF_ERROR(worker.status());
    hosts_.push_back((*worker)->name());
    for (Device* device : (*worker)->devices()) devices_.push_back(device);
    workers_.push_back(*std::move(worker));
  }
  RETURN_IF_ERROR(CheckDistinct());
  std::stable_sort(devices_.begin(), devices_.end(),
                   [](const Device* a, const Device* b) { return Rank(*a) < Rank(*b); });
  hosts_.emplace_back("local");
  return absl::OkStatus();
}

// One process at two addresses would be counted on twice.
absl::Status Fleet::CheckDistinct() const {
  std::map<std::string, std::string> labels;  // by identity
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) {
    if (worker->info().incarnation.empty()) continue;  // of a release that has none
    const auto [known, fresh] = labels.emplace(WorkerIdentity(worker->info()), worker->label());
    if (fresh) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--workers: ", worker->label(), " is the same process as ", known->second));
  }
  return absl::OkStatus();
}

absl::Status Fleet::OpenLink(const FleetOptions& options) {
  FleetLinkOptions link;
  link.transport = options.transport == "tls" ? "grpc" : options.transport;
  // A worker that is lost meanwhile ends it sooner.
  link.timeout = 4 * options.loss_after;
  link.logger = &logger_;
  link.security = security();
  if (link.transport != "grpc") {
    absl::StatusOr<std::unique_ptr<Transport>> ucx = NewUcxTransport(UcxOptionsFor(workers_));
    if (ucx.ok()) {
      transports_.push_back(*std::move(ucx));
    } else if (link.transport == "ucx") {
      return ucx.status();
    } else {
      logger_.Warning(StdView(absl::StrCat("data travels over gRPC: ", ucx.status().message())));
    }
  }
  for (const std::unique_ptr<Transport>& transport : transports_) {
    link.transports.push_back(transport.get());
  }
  std::vector<RemoteWorker*> workers;
  workers.reserve(workers_.size());
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) workers.push_back(worker.get());
  ASSIGN_OR_RETURN(link_, FleetLink::Open(std::move(workers), link));
  return absl::OkStatus();
}

absl::Status Fleet::StartWatch(const FleetOptions& options) {
  if (directory_ == nullptr || !options.watch) return absl::OkStatus();
  std::vector<std::string> identities;
  identities.reserve(workers_.size());
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) {
    identities.push_back(WorkerIdentity(worker->info()));
  }
  WorkerWatch::Options watch;
  watch.worker = WorkerOptions(options);
  ASSIGN_OR_RETURN(watch_, WorkerWatch::Start(*directory_, std::move(identities), watch));
  return absl::OkStatus();
}

absl::Status Fleet::lost() const {
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) RETURN_IF_ERROR(worker->lost());
  return absl::OkStatus();
}

std::string Fleet::WorkerWithoutDetached() const {
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) {
    if (worker->info().protocol_minor < kDetachedCollectivesMinor) return worker->label();
  }
  return "";
}

absl::Status Fleet::leaving() const {
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) {
    if (!worker->draining()) continue;
    return absl::UnavailableError(absl::StrCat(worker->label(), " is draining"));
  }
  return watch_ == nullptr ? absl::OkStatus() : watch_->news();
}

absl::Status Fleet::Explain(const absl::Status& error) const {
  if (error.ok()) return error;
  RETURN_IF_ERROR(lost());
  for (const std::unique_ptr<RemoteWorker>& worker : workers_) {
    for (const RemoteDevice* device : worker->remote_devices()) {
      RETURN_IF_ERROR(device->query_failure());
    }
  }
  return error;
}

}  // namespace weft
