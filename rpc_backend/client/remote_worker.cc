#include "rpc_backend/client/remote_worker.h"

#include <array>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/unix_time.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/host_codec.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

// The device whose memory device `i` shares: of those that name the same buffer type the first
// processor, else the first. Returns `i` itself for that one.
size_t OwnerOf(const std::vector<WorkerDevice>& devices, size_t i) {
  size_t owner = devices.size();
  for (size_t j = 0; j < devices.size(); ++j) {
    if (devices[j].buffer_type != devices[i].buffer_type) continue;
    if (devices[j].kind == DeviceKind::kCpu) return j;
    if (owner == devices.size()) owner = j;
  }
  return owner;
}

RemoteWorkerInfo InfoOf(const WorkerHello& hello) {
  RemoteWorkerInfo info;
  info.name = hello.name;
  info.release = hello.protocol.release;
  info.protocol_major = hello.protocol.major;
  info.protocol_minor = hello.protocol.minor;
  info.incarnation = hello.incarnation;
  info.host_identity = hello.host_identity;
  info.features = SharedFeatures(OwnHello(), hello.protocol);
  info.transports = hello.transports;
  info.draining = hello.draining;
  info.has_cache = hello.has_cache;
  info.sessions = hello.sessions;
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteWorker>> RemoteWorker::Connect(RemoteWorkerOptions options,
                                                                    Logger* logger) {
  ASSIGN_OR_RETURN(std::shared_ptr<WorkerConnection> connection,
                   WorkerConnection::Open(std::move(options), logger));
  return absl::WrapUnique(new RemoteWorker(std::move(connection)));
}

absl::StatusOr<RemoteWorkerInfo> RemoteWorker::Ask(RemoteWorkerOptions options) {
  ASSIGN_OR_RETURN(const WorkerHello hello, WorkerConnection::Greet(std::move(options)));
  return InfoOf(hello);
}

RemoteWorker::RemoteWorker(std::shared_ptr<WorkerConnection> connection)
    : connection_(std::move(connection)), info_(InfoOf(connection_->hello())) {
  const std::vector<WorkerDevice>& devices = connection_->hello().devices;
  owned_.resize(devices.size());
  std::array<int, 4> counts{};
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const WorkerDevice& device : devices) {
    names.push_back(absl::StrCat(name(), ".", AbslView(DeviceKindName(device.kind)),
                                 counts[static_cast<size_t>(device.kind)]++));
  }
  // Owners of memory first, for the others to refer to.
  for (const bool owners : {true, false}) {
    for (size_t i = 0; i < devices.size(); ++i) {
      const size_t owner = OwnerOf(devices, i);
      if ((owner == i) != owners) continue;
      owned_[i] =
          std::make_unique<RemoteDevice>(connection_, static_cast<int32_t>(i), names[i], devices[i],
                                         owners ? nullptr : owned_[owner].get());
    }
  }
  for (const std::unique_ptr<RemoteDevice>& device : owned_) {
    borrowed_.push_back(device.get());
    plain_.push_back(device.get());
  }
}

RemoteWorker::~RemoteWorker() { Close(); }

const std::string& RemoteWorker::name() const { return connection_->options().name; }
const std::string& RemoteWorker::label() const { return connection_->label(); }
const HostAddress& RemoteWorker::address() const { return connection_->address(); }
const RemoteWorkerOptions& RemoteWorker::options() const { return connection_->options(); }
absl::Status RemoteWorker::lost() const { return connection_->lost(); }

int64_t RemoteWorker::AddLossListener(std::function<void(const absl::Status&)> listener) {
  return connection_->AddLossListener(std::move(listener));
}

void RemoteWorker::RemoveLossListener(int64_t number) { connection_->RemoveLossListener(number); }
bool RemoteWorker::draining() const { return connection_->draining(); }
PingStatistics RemoteWorker::pings() const { return connection_->pings(); }

absl::StatusOr<WorkerStatistics> RemoteWorker::Statistics() {
  proto::StatisticsRequest request;
  proto::StatisticsReply reply;
  RETURN_IF_ERROR(
      connection_->Invoke("Statistics", &proto::Worker::Stub::Statistics, request, reply));
  WorkerStatistics statistics;
  statistics.steps = reply.steps();
  statistics.programs_installed = reply.programs_installed();
  statistics.compute_seconds = reply.compute_seconds();
  statistics.wait_seconds = reply.wait_seconds();
  statistics.buffer_bytes = reply.buffer_bytes();
  for (const proto::PeerStatistics& peer : reply.peers()) {
    statistics.peers.push_back({.peer = peer.peer(),
                                .transport = peer.transport(),
                                .messages_sent = peer.messages_sent(),
                                .bytes_sent = peer.bytes_sent(),
                                .messages_received = peer.messages_received(),
                                .bytes_received = peer.bytes_received(),
                                .dropped = peer.dropped()});
  }
  return statistics;
}

absl::StatusOr<RemoteHost> RemoteWorker::DescribeHost() {
  proto::StatisticsRequest request;
  request.set_host(true);
  proto::StatisticsReply reply;
  const int64_t asked = UnixMicroseconds();
  RETURN_IF_ERROR(
      connection_->Invoke("Statistics", &proto::Worker::Stub::Statistics, request, reply));
  const int64_t answered = UnixMicroseconds();
  if (!reply.has_host()) {
    return absl::UnimplementedError(
        absl::StrCat(name(), ": weft ", info_.release, " does not tell about its machine"));
  }
  RemoteHost host;
  host.facts = DecodeHost(reply.host());
  const double middle = (static_cast<double>(asked) + static_cast<double>(answered)) / 2;
  host.clock_ahead_seconds = (static_cast<double>(host.facts.unix_microseconds) - middle) / 1e6;
  host.clock_error_seconds = static_cast<double>(answered - asked) / 2e6;
  return host;
}

absl::StatusOr<int32_t> RemoteWorker::Drain() {
  constexpr std::string_view kVerb = "Drain";
  const proto::DrainRequest request;
  proto::DrainReply reply;
  WorkerConnection::Call call(*connection_, options().call_timeout);
  RETURN_IF_ERROR(call.Result(kVerb, connection_->stub().Drain(&call.context(), request, &reply)));
  RETURN_IF_ERROR(connection_->CheckReply(kVerb, reply));
  return reply.sessions();
}

void RemoteWorker::Close() { connection_->Close(); }

}  // namespace weft
