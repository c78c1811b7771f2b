#include "worker/worker.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/host_address.h"
#include "common/base/machine_memory.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"
#include "common/host/control_group.h"
#include "common/metrics/metric_list.h"
#include "common/transport/host_identity.h"
#include "common/transport/own_address.h"
#include "common/transport/ucx/ucx_transport.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/limits.h"
#include "rpc_backend/protocol/version.h"
#include "worker/event_loop.h"
#include "worker/listen_address.h"
#include "worker/self_test/test_device.h"
#include "worker/worker_metrics.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::milliseconds kShutdownGrace{500};
constexpr size_t kIncarnationBytes = 16;

std::string MachineName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "worker";
  return name.data();
}

absl::StatusOr<std::string> NewIncarnation() {
  std::array<uint8_t, kIncarnationBytes> bytes = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(bytes)));
  return std::string(bytes.begin(), bytes.end());
}

// What the inventory says of a device; its memory is filled in for each hello.
WorkerDevice Describe(absl::Span<Device* const> devices, const Device& device) {
  WorkerDevice made;
  auto& mutable_device = const_cast<Device&>(device);
  const BufferType& type = mutable_device.buffer_type();
  made.kind = device.kind();
  made.description = device.description();
  made.arithmetic = device.arithmetic();
  made.memory = device.memory();
  made.capabilities = device.capabilities();
  made.buffer_type = type.name();
  made.alignment = type.alignment();
  made.max_buffer_bytes = type.max_bytes();
  made.buffer_is_host = type.is_host();
  made.layout = std::string(type.layout());
  made.pads = !type.is_host();
  made.preferred_batch = device.preferred_batch();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (device.Supports(devices[i]->buffer_type()).ok()) {
      made.reads.push_back(static_cast<int32_t>(i));
    }
  }
  return made;
}

// What others shall connect to instead of `listened`; empty: that.
absl::StatusOr<std::string> AnnouncedHost(const WorkerOptions& options,
                                          const std::string& listened) {
  if (!options.announce.empty()) {
    ASSIGN_OR_RETURN(const ListenAddress address,
                     ParseListenAddress("--announce", options.announce));
    return address.host;
  }
  if (!IsWildcard(listened)) return std::string();
  std::string own = OwnAddress();
  return own.empty() ? MachineName() : own;
}

// Of the control plane; 0: the one that was listened on.
absl::StatusOr<int32_t> AnnouncedPort(const WorkerOptions& options) {
  if (options.announce.empty()) return 0;
  ASSIGN_OR_RETURN(const HostAddress address, ParseHostAddress(options.announce, 0, 0));
  return address.port;
}

}  // namespace

absl::Status Worker::TestDevices() {
  std::vector<Device*> tested;
  for (Device* device : parts_.devices) {
    absl::StatusOr<Quarantine> quarantine = TestDevice(*device);
    if (absl::IsDeadlineExceeded(quarantine.status())) {
      logger_.Error(StdView(absl::StrCat(quarantine.status().message(), "; it is left out")));
      devices_.Abandon(device);
      continue;
    }
    RETURN_IF_ERROR(quarantine.status());
    for (const std::string& text : quarantine->Texts()) {
      logger_.Warning(StdView(absl::StrCat(device->name(), " failed its self-test: ", text)));
    }
    tested.push_back(device);
    parts_.quarantines.push_back(*std::move(quarantine));
  }
  if (tested.empty()) return absl::FailedPreconditionError("no device passed its self-test");
  parts_.devices = std::move(tested);
  return absl::OkStatus();
}

absl::Status Worker::OpenSecurity(const WorkerOptions& options, const ListenAddress& address) {
  if (options.tls.empty()) {
    if (!address.loopback) {
      logger_.Warning(StdView(absl::StrCat("--insecure: nothing is encrypted, and whoever reaches ",
                                           address.Text(), " may use this machine")));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<GrpcTls>> tls = GrpcTls::Open(options.tls, TlsRole::kWorker);
  if (absl::IsFailedPrecondition(tls.status())) {  // files that do not fit are bad input
    return absl::InvalidArgumentError(tls.status().message());
  }
  RETURN_IF_ERROR(tls.status());
  tls_ = *std::move(tls);
  tls_watch_ = std::make_unique<CertificateWatch>(tls_->folder(), clock_, logger_);
  const CertificateFacts& facts = tls_->folder().facts;
  const bool all = options.transport == "grpc" || options.transport == "tls";
  logger_.Info(StdView(absl::StrCat(
      "TLS 1.3 with certificate ", CertificateText(facts), " until ", UtcText(facts.not_after),
      all ? "" : "; activations over UCX are not encrypted (--data-plane tls)")));
  return absl::OkStatus();
}

absl::Status Worker::OpenTransports(const WorkerOptions& options, const ListenAddress& address,
                                    const TransportWrapper& wrap_ucx) {
  if (options.transport != "grpc" && options.transport != "tls") {
    UcxTransportOptions ucx;
    if (!options.data_listen.empty()) {
      ASSIGN_OR_RETURN(const ListenAddress data,
                       ParseListenAddress("--data-listen", options.data_listen));
      ucx.bind_host = data.host;
    } else if (!address.host.empty()) {
      ucx.bind_host = address.host;
    }
    ASSIGN_OR_RETURN(ucx.announce_host, AnnouncedHost(options, ucx.bind_host));
    ASSIGN_OR_RETURN(const PortRange ports, ParsePortRange("--data-ports", options.data_ports));
    ucx.first_port = ports.first;
    ucx.port_count = static_cast<uint16_t>(ports.last - ports.first + 1);
    absl::StatusOr<std::unique_ptr<Transport>> made = NewUcxTransport(ucx);
    if (made.ok()) {
      ucx_ = wrap_ucx ? wrap_ucx(*std::move(made)) : *std::move(made);
      parts_.transports.push_back(ucx_.get());
    } else if (options.transport == "ucx") {
      return made.status();
    } else {
      logger_.Warning(StdView(absl::StrCat("data travels over gRPC: ", made.status().message())));
    }
  }
  grpc_ = std::make_unique<GrpcTransport>(
      "", WireSecurity{.tls = tls_.get(), .insecure = options.insecure}, &logger_);
  parts_.transports.push_back(grpc_.get());
  return absl::OkStatus();
}

absl::StatusOr<WorkerHello> Worker::MakeHello(const WorkerOptions& options) const {
  WorkerHello hello;
  hello.protocol = OwnHello();
  hello.name = options.name;
  ASSIGN_OR_RETURN(hello.incarnation, NewIncarnation());
  hello.host_identity = HostIdentity();
  for (size_t i = 0; i < parts_.devices.size(); ++i) {
    hello.devices.push_back(Describe(parts_.devices, *parts_.devices[i]));
    if (options.self_test) hello.devices.back().quarantined = parts_.quarantines[i].Texts();
  }
  for (const Transport* transport : parts_.transports) {
    hello.transports.push_back(transport->name());
  }
  hello.has_cache = cache_ != nullptr;
  hello.lease_ms = options.lease_ms;
  hello.ping_ms = options.lease_ms / 4;
  return hello;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(WorkerOptions options,
                                                      const DeviceFactory& factory, Logger& logger,
                                                      const TransportWrapper& wrap_ucx) {
  RETURN_IF_ERROR(CheckWorkerOptions(options));
  if (options.name.empty()) options.name = MachineName();
  std::unique_ptr<Worker> worker(new Worker(logger));
  DeviceOptions devices;
  devices.host = options.name;
  devices.kinds = options.devices;
  devices.threads = options.threads > 0 ? options.threads : DefaultThreads();
  devices.memory_bytes = OfferedMemoryBytes(options.memory_bytes, MachineMemoryBytes());
  if (devices.memory_bytes < options.memory_bytes) {
    logger.Warning(
        StdView(absl::StrCat("--memory: ", options.memory_bytes, " bytes; the machine has ",
                             devices.memory_bytes, ", which are offered")));
  }
  devices.instruction_set = options.instruction_set;
  ASSIGN_OR_RETURN(worker->devices_, DiscoverDevices(devices, factory));
  worker->parts_.devices = worker->devices_.devices;
  if (options.self_test) RETURN_IF_ERROR(worker->TestDevices());
  if (!options.cache.empty()) {
    ASSIGN_OR_RETURN(worker->cache_,
                     WeightCache::Open(options.cache, options.cache_quota_bytes, logger));
  }
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress("--listen", options.listen));
  if (IsSocketServed(address)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen, ": another process does"));
  }
  RETURN_IF_ERROR(worker->OpenSecurity(options, address));
  RETURN_IF_ERROR(worker->OpenTransports(options, address, wrap_ucx));
  worker->files_ = std::make_unique<ModelFiles>(!options.no_files);
  worker->parts_.files = worker->files_.get();
  worker->parts_.cache = worker->cache_.get();
  worker->parts_.logger = &logger;
  worker->parts_.meter = &worker->meter_;
  worker->sessions_ = std::make_unique<SessionTable>(worker->parts_, worker->clock_,
                                                     std::chrono::milliseconds(options.lease_ms),
                                                     WireLimits().sessions);
  WorkerServerOptions server;
  server.listen = address;
  if (address.socket_path.empty()) {
    ASSIGN_OR_RETURN(server.announce.host, AnnouncedHost(options, address.host));
    ASSIGN_OR_RETURN(server.announce.port, AnnouncedPort(options));
  }
  server.data = worker->grpc_.get();
  server.tls = worker->tls_.get();
  server.logger = &logger;
  ASSIGN_OR_RETURN(server.hello, worker->MakeHello(options));
  ASSIGN_OR_RETURN(worker->server_,
                   WorkerServer::Start(server, worker->parts_, *worker->sessions_, worker->clock_));
  RETURN_IF_ERROR(worker->StartJoining(options, server));
  RETURN_IF_ERROR(worker->OpenProbes(options));
  return worker;
}

absl::Status Worker::StartJoining(const WorkerOptions& options, const WorkerServerOptions& server) {
  if (options.join.empty()) return absl::OkStatus();
  JoinerOptions joiner;
  ASSIGN_OR_RETURN(joiner.coordinator, ParseJoinAddress(options.join));
  joiner.token_file = options.join_token_file;
  joiner.security = {.tls = tls_.get(), .insecure = options.insecure};
  joiner.claim = {.name = CleanText(options.name, WireLimits().name_bytes),
                  .address = {},
                  .incarnation = server.hello.incarnation,
                  .host_identity = server.hello.host_identity};
  ASSIGN_OR_RETURN(joiner.own, ParseHostAddress(address(), 0));
  if (!options.announce.empty()) {
    joiner.own.host = server.announce.host;
  } else if (IsWildcard(joiner.own.host)) {
    joiner.own.host.clear();
  }
  if (server.announce.port != 0) joiner.own.port = server.announce.port;
  ASSIGN_OR_RETURN(joiner_, Joiner::Start(std::move(joiner), logger_));
  return absl::OkStatus();
}

absl::Status Worker::OpenProbes(const WorkerOptions& options) {
  if (options.metrics_port < 0) return absl::OkStatus();
  ProbeServer::Pages pages;
  pages["/livez"] = [] { return TextReply(200, "live"); };
  pages["/readyz"] = [this] {
    if (sessions_->accepts()) return TextReply(200, "ready");
    return TextReply(503, sessions_->draining() ? "not ready: the worker is draining"
                                                : "not ready: it has the most sessions it takes");
  };
  pages["/metrics"] = [this] {
    WorkerState state{sessions_->count(), sessions_->accepts(), sessions_->draining(),
                      sessions_->buffer_bytes()};
    if (tls_watch_ != nullptr) state.certificate_days_left = tls_watch_->days_left();
    if (joiner_ != nullptr) state.joined = joiner_->joined();
    HttpReply reply;
    reply.content_type = kMetricsContentType;
    reply.body = WorkerMetricsText(state, meter_.counts(), parts_.devices, cache_.get());
    return reply;
  };
  ASSIGN_OR_RETURN(const ListenAddress address,
                   ParseListenAddress("--metrics-host", options.metrics_host));
  const bool open = address.loopback || options.insecure;
  ASSIGN_OR_RETURN(metrics_access_,
                   MetricsAccess::Create(options.metrics_token_file, open, &logger_));
  if (!open && options.metrics_token_file.empty()) {
    logger_.Warning(
        "/metrics is closed: beyond this machine it wants --metrics-token-file FILE; /livez and "
        "/readyz answer");
  }
  auto guard = [this](const HttpRequest& request) {
    return request.path == "/metrics" ? metrics_access_->Refuse(request) : std::nullopt;
  };
  ASSIGN_OR_RETURN(probes_, ProbeServer::Start(options.metrics_host, options.metrics_port,
                                               std::move(pages), clock_, std::move(guard)));
  return absl::OkStatus();
}

void Worker::CheckSessions() {
  if (tls_watch_ != nullptr) tls_watch_->Look();
  sessions_->EndSilent();
  server_->SetServing(sessions_->accepts());
}

void Worker::Drain() {
  if (joiner_ != nullptr) joiner_->Leave();
  sessions_->Drain();
  server_->SetServing(false);
}

Worker::~Worker() {
  probes_.reset();
  joiner_.reset();
  if (server_ != nullptr) server_->Shutdown("the worker ends", kShutdownGrace);
}

namespace {

// Ends a worker: at once, or when its sessions have ended by themselves.
class WorkerEnd {
 public:
  WorkerEnd(Worker& worker, EventLoop& events, double drain_seconds, Logger& logger)
      : worker_(worker),
        events_(events),
        drain_(std::chrono::duration_cast<Clock::TimePoint::duration>(
            std::chrono::duration<double>(drain_seconds))),
        logger_(logger) {}

  // Asked to by a signal; the second time at once.
  void Ask() {
    if (deadline_) return events_.Stop();
    deadline_ = clock_.Now() + drain_;
    worker_.Drain();
    if (worker_.sessions() > 0) {
      logger_.Info(
          StdView(absl::StrCat("draining: ", worker_.sessions(), " sessions may go on for ",
                               std::chrono::duration<double>(drain_).count(), " s; no new ones")));
    }
    Look();
  }
  // Every now and then.
  void Look() {
    if (deadline_ && (worker_.sessions() == 0 || clock_.Now() >= *deadline_)) events_.Stop();
  }

 private:
  Worker& worker_;
  EventLoop& events_;
  const Clock::TimePoint::duration drain_;
  Logger& logger_;
  const SystemClock clock_;
  std::optional<Clock::TimePoint> deadline_;  // once it drains
};

// The last of a coordinator's workers finds the folder that it made for their sockets empty; the
// coordinator itself may have been killed.
void RemoveEmptyFolder(const WorkerOptions& options) {
  const absl::StatusOr<HostAddress> address = ParseHostAddress(options.listen, 0);
  if (!address.ok() || address->socket_path.empty()) return;
  (void)rmdir(std::filesystem::path(address->socket_path).parent_path().c_str());
}

absl::Status RunUntilEnd(Worker& worker, const WorkerOptions& options, Logger& logger) {
  ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> events, EventLoop::Create());
  WorkerEnd end(worker, *events, options.drain_seconds, logger);
  for (const int signal : {SIGTERM, SIGINT}) {
    RETURN_IF_ERROR(events->OnSignal(signal, [&end] { end.Ask(); }));
  }
  RETURN_IF_ERROR(events->Every(kLook, [&] {
    worker.CheckSessions();
    end.Look();
    if (options.parent != 0 && getppid() != options.parent) events->Stop();
  }));
  if (worker.metrics_port() != 0) {
    logger.Info(StdView(absl::StrCat("metrics on http://", options.metrics_host, ":",
                                     worker.metrics_port(), "/metrics")));
  }
  logger.Info(StdView(absl::StrCat("listening on ", worker.address())));
  events->Run();
  return absl::OkStatus();
}

}  // namespace

int RunWorker(const WorkerOptions& options, const DeviceFactory& factory, Logger& logger,
              const TransportWrapper& wrap_ucx) {
  std::signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Start(options, factory, logger, wrap_ucx);
  absl::Status status = worker.status();
  if (status.ok()) status = RunUntilEnd(**worker, options, logger);
  if (worker.ok()) worker->reset();
  if (worker.ok() && options.remove_folder) RemoveEmptyFolder(options);
  if (status.ok()) return 0;
  logger.Error(StdView(status.message()));
  switch (worker.status().code()) {
    case absl::StatusCode::kInvalidArgument:
    // Of files that were named.
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return 2;
    default:
      return 1;
  }
}

}  // namespace weft
