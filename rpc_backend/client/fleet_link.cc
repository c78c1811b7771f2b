#include "rpc_backend/client/fleet_link.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/mutex.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/transport/host_identity.h"
#include "common/transport/link_probe.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/port_edges.h"

namespace weft {
namespace {

// Calls in which a worker waits for others.
constexpr std::string_view kMeasureVerb = "MeasureLink";
constexpr std::string_view kConnectVerb = "ConnectPeers";

bool Offers(const RemoteWorker& worker, const std::string& transport) {
  const std::vector<std::string>& all = worker.info().transports;
  return std::find(all.begin(), all.end(), transport) != all.end();
}

}  // namespace

class FleetLink::Impl {
 public:
  Impl(std::vector<RemoteWorker*> workers, const FleetLinkOptions& options)
      : workers_(std::move(workers)), options_(options), own_transport_("", options_.security) {}
  ~Impl() {
    for (size_t i = 0; i < listeners_.size(); ++i) workers_[i]->RemoveLossListener(listeners_[i]);
  }

  absl::Status Open();
  std::vector<PairMeasurement> MeasureLinks(absl::Span<const FleetPair> pairs,
                                            std::chrono::milliseconds timeout);
  void Abort(const absl::Status& reason) { port_->Abort(reason); }

  int32_t count() const { return static_cast<int32_t>(workers_.size()); }

  const std::vector<RemoteWorker*> workers_;
  std::vector<std::string> names_;  // by number
  uint32_t epoch_ = 0;
  std::string transport_;
  std::unique_ptr<MessagePort> port_;
  std::unique_ptr<PortEdges> edges_;
  std::unique_ptr<PortEdges> collectives_;
  std::vector<std::unique_ptr<RemoteProgramHost>> hosts_;
  std::vector<FleetPair> pairs_;
  std::atomic<int64_t> transfers_ = 0;

 private:
  using TokenMap = std::map<std::pair<int32_t, int32_t>, PeerToken>;

  absl::StatusOr<std::vector<Transport*>> Candidates();
  absl::Status OpenOver(Transport& transport);
  absl::StatusOr<TokenMap> MakeTokens() const;
  // How the others call that process: "w0 (10.0.0.2:7000)".
  std::string PeerName(int32_t number) const;
  void FillPeer(int32_t number, const PeerToken& token, proto::Peer& peer) const;
  absl::StatusOr<std::string> OpenEpoch(int32_t worker, const TokenMap& tokens);
  absl::Status Connect(int32_t worker, const TokenMap& tokens,
                       const std::vector<std::string>& addresses, Clock::TimePoint deadline);
  absl::Status AnyLoss() const;
  // `error`, or the loss of a worker that caused it.
  absl::Status Explain(const absl::Status& error);
  void Lose(const absl::Status& lost);
  PairMeasurement Measure(const FleetPair& pair, std::chrono::milliseconds timeout);
  absl::StatusOr<PairMeasurement> MeasureFrom(int32_t worker, int32_t peer, bool initiate,
                                              std::chrono::milliseconds timeout);

  const FleetLinkOptions options_;
  SessionKey key_;  // of the epoch: what its processes prove to each other to know
  const SystemClock clock_;
  GrpcTransport own_transport_;
  std::vector<int64_t> listeners_;
  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);                 // of the first worker that was
  MessagePort* live_port_ ABSL_GUARDED_BY(mutex_) = nullptr;  // port_, for Lose
};

absl::StatusOr<std::vector<Transport*>> FleetLink::Impl::Candidates() {
  std::vector<Transport*> known = options_.transports;
  known.push_back(&own_transport_);
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Transport* transport : known) names.push_back(transport->name());
  const bool any = options_.transport == "auto";
  if (!any && std::find(names.begin(), names.end(), options_.transport) == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transport '", options_.transport, "' is not one of: auto, ", absl::StrJoin(names, ", ")));
  }
  std::vector<Transport*> usable;
  absl::Status why;
  for (Transport* transport : known) {
    if (!any && transport->name() != options_.transport) continue;
    const auto without = std::find_if(
        workers_.begin(), workers_.end(),
        [transport](const RemoteWorker* worker) { return !Offers(*worker, transport->name()); });
    if (without == workers_.end()) {
      usable.push_back(transport);
    } else {
      why = absl::FailedPreconditionError(
          absl::StrCat((*without)->label(), " does not offer the transport ", transport->name()));
    }
  }
  if (usable.empty()) return why;
  return usable;
}

absl::Status FleetLink::Impl::Open() {
  if (workers_.empty()) return absl::InvalidArgumentError("a fleet of no workers");
  for (const RemoteWorker* worker : workers_) names_.push_back(worker->name());
  names_.emplace_back("coordinator");
  const std::string own_identity = HostIdentity();
  for (int32_t a = 0; a < count(); ++a) {
    for (int32_t b = a + 1; b <= count(); ++b) {
      const std::string& first = workers_[a]->info().host_identity;
      const std::string& second = b < count() ? workers_[b]->info().host_identity : own_identity;
      const bool same = !first.empty() && first == second;
      pairs_.push_back({.a = a, .b = b, .same_host = same});
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Transport*> candidates, Candidates());
  for (RemoteWorker* worker : workers_) {
    listeners_.push_back(worker->AddLossListener([this](const absl::Status& lost) { Lose(lost); }));
  }
  absl::Status status;
  for (Transport* transport : candidates) {
    status = OpenOver(*transport);
    if (status.ok()) break;
    RETURN_IF_ERROR(AnyLoss());
    if (options_.logger != nullptr && transport != candidates.back()) {
      options_.logger->Warning(StdView(
          absl::StrCat("data does not travel over ", transport->name(), ": ", status.message())));
    }
  }
  RETURN_IF_ERROR(status);
  edges_ = std::make_unique<PortEdges>(*port_, epoch_);
  collectives_ = std::make_unique<PortEdges>(*port_, epoch_, MessageKind::kCollective);
  for (int32_t i = 0; i < count(); ++i) {
    RemoteProgramHostOptions host;
    host.worker = workers_[i];
    host.port = port_.get();
    host.peer = i;
    host.epoch = epoch_;
    host.explain = [this](const absl::Status& error) { return Explain(error); };
    hosts_.push_back(std::make_unique<RemoteProgramHost>(host));
  }
  return absl::OkStatus();
}

absl::Status FleetLink::Impl::OpenOver(Transport& transport) {
  const Clock::TimePoint deadline = clock_.Now() + options_.timeout;
  transport_ = transport.name();
  epoch_ = 0;
  for (const RemoteWorker* worker : workers_) {
    epoch_ = std::max(epoch_, const_cast<RemoteWorker*>(worker)->connection().last_epoch() + 1);
  }
  for (RemoteWorker* worker : workers_) worker->connection().UseEpoch(epoch_);
  ASSIGN_OR_RETURN(key_, SessionKey::New());
  ASSIGN_OR_RETURN(const TokenMap tokens, MakeTokens());
  std::vector<std::string> addresses(workers_.size());
  RETURN_IF_ERROR(RunParallel(workers_.size(), [&](size_t i) -> absl::Status {
    ASSIGN_OR_RETURN(addresses[i], OpenEpoch(static_cast<int32_t>(i), tokens));
    return absl::OkStatus();
  }));
  // The key tells sessions apart, of which each worker has its own number.
  PortOptions port;
  port.epoch = epoch_;
  port.own_number = count();
  port.key = key_;
  port.logger = options_.logger;
  port.limits = options_.limits;
  ASSIGN_OR_RETURN(std::unique_ptr<MessagePort> opened, transport.NewPort(port));
  opened->StopListening();  // this process connects to all others
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(lost_);
    live_port_ = opened.get();
    std::swap(port_, opened);
  }
  return RunParallel(workers_.size(), [&](size_t i) {
    return Connect(static_cast<int32_t>(i), tokens, addresses, deadline);
  });
}

absl::StatusOr<FleetLink::Impl::TokenMap> FleetLink::Impl::MakeTokens() const {
  TokenMap tokens;
  for (const FleetPair& pair : pairs_) {
    ASSIGN_OR_RETURN(tokens[std::pair(pair.a, pair.b)], NewPeerToken());
  }
  return tokens;
}

std::string FleetLink::Impl::PeerName(int32_t number) const {
  if (number == count()) return names_[number];
  return absl::StrCat(names_[number], " (", workers_[number]->address().Text(), ")");
}

void FleetLink::Impl::FillPeer(int32_t number, const PeerToken& token, proto::Peer& peer) const {
  peer.set_number(number);
  peer.set_name(PeerName(number));
  peer.set_token(token.data(), token.size());
}

// Those with higher numbers connect to those with lower ones.
absl::StatusOr<std::string> FleetLink::Impl::OpenEpoch(int32_t worker, const TokenMap& tokens) {
  WorkerConnection& connection = workers_[worker]->connection();
  proto::OpenEpochRequest request;
  proto::OpenEpochReply reply;
  request.set_epoch(epoch_);
  request.set_own_number(worker);
  request.set_coordinator_number(count());
  request.set_transport(transport_);
  request.set_session_key(std::string(key_.bytes()));
  for (int32_t other = worker + 1; other <= count(); ++other) {
    FillPeer(other, tokens.at({worker, other}), *request.add_expected());
  }
  RETURN_IF_ERROR(connection.Invoke("OpenEpoch", &proto::Worker::Stub::OpenEpoch, request, reply,
                                    options_.timeout));
  if (reply.address().empty() ||
      static_cast<int64_t>(reply.address().size()) > kMaxPortAddressBytes) {
    return connection.Nonsense("OpenEpoch", "its port has no address");
  }
  return reply.address();
}

absl::Status FleetLink::Impl::Connect(int32_t worker, const TokenMap& tokens,
                                      const std::vector<std::string>& addresses,
                                      Clock::TimePoint deadline) {
  WorkerConnection& connection = workers_[worker]->connection();
  if (worker > 0) {
    proto::ConnectPeersRequest request;
    proto::ConnectPeersReply reply;
    request.set_epoch(epoch_);
    request.set_timeout_ms(options_.timeout.count());
    for (int32_t other = 0; other < worker; ++other) {
      proto::Peer& peer = *request.add_peers();
      FillPeer(other, tokens.at({other, worker}), peer);
      peer.set_address(addresses[other]);
    }
    RETURN_IF_ERROR(AnyLoss());
    RETURN_IF_ERROR(Explain(connection.Invoke(kConnectVerb, &proto::Worker::Stub::ConnectPeers,
                                              request, reply, options_.timeout)));
  }
  const PortPeer peer{
      .number = worker, .name = workers_[worker]->label(), .token = tokens.at({worker, count()})};
  return Explain(port_->Connect(peer, addresses[worker], deadline));
}

absl::Status FleetLink::Impl::Explain(const absl::Status& error) {
  if (!absl::IsUnavailable(error) && !absl::IsCancelled(error)) return error;
  std::chrono::milliseconds longest{0};
  for (const RemoteWorker* worker : workers_) {
    longest = std::max(longest, worker->options().ping_period);
  }
  const Clock::TimePoint deadline = clock_.Now() + longest;
  MutexLock lock(mutex_);
  while (lost_.ok() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return lost_.ok() ? error : lost_;
}

void FleetLink::Impl::Lose(const absl::Status& lost) {
  MutexLock lock(mutex_);
  if (lost_.ok()) lost_ = lost;
  if (live_port_ != nullptr) live_port_->Abort(lost);
  changed_.NotifyAll();
  for (RemoteWorker* worker : workers_) {
    worker->connection().CancelCalls(kMeasureVerb);
    worker->connection().CancelCalls(kConnectVerb);
  }
}

absl::Status FleetLink::Impl::AnyLoss() const {
  MutexLock lock(mutex_);
  return lost_;
}

// --- measuring ---

std::vector<PairMeasurement> FleetLink::Impl::MeasureLinks(absl::Span<const FleetPair> pairs,
                                                           std::chrono::milliseconds timeout) {
  std::vector<PairMeasurement> all;
  for (const FleetPair& pair : pairs) all.push_back(Measure(pair, timeout));
  return all;
}

absl::StatusOr<PairMeasurement> FleetLink::Impl::MeasureFrom(int32_t worker, int32_t peer,
                                                             bool initiate,
                                                             std::chrono::milliseconds timeout) {
  WorkerConnection& connection = workers_[worker]->connection();
  proto::MeasureLinkRequest request;
  proto::MeasureLinkReply reply;
  request.set_peer(peer);
  request.set_initiate(initiate);
  request.set_timeout_ms(timeout.count());
  // The worker is the one to give up.
  RETURN_IF_ERROR(connection.Invoke(kMeasureVerb, &proto::Worker::Stub::MeasureLink, request, reply,
                                    timeout + std::chrono::milliseconds(500)));
  RETURN_IF_ERROR(AnyLoss());  // it might have come before the call
  PairMeasurement measured;
  measured.transport = reply.transport();
  measured.latency_us = reply.latency_us();
  measured.bytes_per_s = reply.bytes_per_s();
  return measured;
}

PairMeasurement FleetLink::Impl::Measure(const FleetPair& pair, std::chrono::milliseconds timeout) {
  PairMeasurement measured;
  measured.pair = pair;
  measured.status = AnyLoss();
  if (!measured.status.ok()) return measured;  // the data plane is gone
  const bool own = pair.b == count();
  const absl::Status status = RunParallel(2, [&](size_t side) -> absl::Status {
    if (side == 0) return MeasureFrom(pair.a, pair.b, false, timeout).status();
    if (!own) {
      ASSIGN_OR_RETURN(measured, MeasureFrom(pair.b, pair.a, true, timeout));
      return absl::OkStatus();
    }
    LinkProbeOptions probe;
    probe.key = {.epoch = epoch_, .kind = static_cast<uint32_t>(MessageKind::kProbe)};
    ASSIGN_OR_RETURN(const LinkMeasurement speed,
                     MeasureLink(*port_, pair.a, probe, clock_.Now() + timeout));
    measured.latency_us = speed.latency_us;
    measured.bytes_per_s = speed.bytes_per_s;
    for (const PeerTraffic& traffic : port_->traffic()) {
      if (traffic.peer == pair.a) measured.transport = traffic.transport;
    }
    return absl::OkStatus();
  });
  measured.status = status.ok() || AnyLoss().ok() ? status : AnyLoss();
  measured.pair = pair;
  return measured;
}

// --- FleetLink ---

FleetLink::FleetLink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FleetLink::~FleetLink() = default;

absl::StatusOr<std::unique_ptr<FleetLink>> FleetLink::Open(std::vector<RemoteWorker*> workers,
                                                           const FleetLinkOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(workers), options);
  RETURN_IF_ERROR(impl->Open());
  return absl::WrapUnique(new FleetLink(std::move(impl)));
}

int32_t FleetLink::worker_count() const { return impl_->count(); }
RemoteWorker& FleetLink::worker(int32_t number) { return *impl_->workers_[number]; }
int64_t FleetLink::NextTransfer() { return ++impl_->transfers_; }
uint32_t FleetLink::epoch() const { return impl_->epoch_; }
const std::string& FleetLink::transport() const { return impl_->transport_; }
const std::string& FleetLink::name(int32_t number) const { return impl_->names_[number]; }
RemoteProgramHost& FleetLink::host(int32_t worker) { return *impl_->hosts_[worker]; }
MessagePort& FleetLink::port() { return *impl_->port_; }
EdgePort& FleetLink::edges() { return *impl_->edges_; }
EdgePort& FleetLink::collectives() { return *impl_->collectives_; }
absl::Span<const FleetPair> FleetLink::pairs() const { return impl_->pairs_; }
void FleetLink::Abort(const absl::Status& reason) { impl_->Abort(reason); }

std::vector<PairMeasurement> FleetLink::MeasureLinks(std::chrono::milliseconds timeout_per_pair) {
  return impl_->MeasureLinks(impl_->pairs_, timeout_per_pair);
}

std::vector<PairMeasurement> FleetLink::MeasureLinks(absl::Span<const FleetPair> pairs,
                                                     std::chrono::milliseconds timeout_per_pair) {
  return impl_->MeasureLinks(pairs, timeout_per_pair);
}

}  // namespace weft
