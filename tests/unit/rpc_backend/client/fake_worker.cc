#include "tests/unit/rpc_backend/client/fake_worker.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/link_probe.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kLate{20};  // far enough that only a hang reaches it

WorkerDevice HonestDevice(DeviceKind kind, const std::string& buffer_type) {
  WorkerDevice device;
  device.kind = kind;
  device.description = "not there";
  device.memory = {int64_t{1} << 30, int64_t{2} << 30};
  device.buffer_type = buffer_type;
  device.alignment = 64;
  device.max_buffer_bytes = int64_t{1} << 30;
  device.layout = "standard";
  return device;
}

MessageHeader ReplyHeader(uint32_t epoch, int64_t step) {
  return {
      .epoch = epoch, .kind = static_cast<uint32_t>(MessageKind::kReply), .step = step, .id = 0};
}

}  // namespace

RemoteWorkerOptions TestWorkerOptions(const std::string& address, const std::string& name) {
  RemoteWorkerOptions options;
  options.name = name;
  options.address = address;
  options.coordinator = "test";
  options.connect_timeout = std::chrono::milliseconds(10000);
  options.call_timeout = std::chrono::milliseconds(20000);
  options.stall_timeout = std::chrono::milliseconds(20000);
  options.ping_period = std::chrono::milliseconds(20);
  options.loss_after = std::chrono::milliseconds(10000);
  return options;
}

FakeWorker::FakeWorker() : transport_("") {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(this);
  builder.RegisterService(&transport_.service());
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
  transport_.SetAddress(address_);
}

FakeWorker::~FakeWorker() {
  Die();
  MutexLock lock(mutex_);
  planes_.clear();
}

void FakeWorker::Die() {
  std::vector<std::unique_ptr<Plane>> planes;
  {
    MutexLock lock(mutex_);
    dead_ = true;
    planes.swap(planes_);
    changed_.NotifyAll();
  }
  stop_ = true;
  for (const auto& plane : planes) {
    plane->port->Wake();
    plane->thread.join();
    plane->port.reset();
  }
  server_->Shutdown(std::chrono::system_clock::time_point());  // long past: cancels all calls
  server_->Wait();
}

int FakeWorker::calls(const std::string& verb) const {
  MutexLock lock(mutex_);
  const auto found = calls_.find(verb);
  return found == calls_.end() ? 0 : found->second;
}

bool FakeWorker::AwaitCalls(const std::string& verb, int count) const {
  MutexLock lock(mutex_);
  const Clock::TimePoint deadline = clock_.Now() + kLate;
  const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = calls_.find(verb);
    return found != calls_.end() && found->second >= count;
  };
  while (!done() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return done();
}

int FakeWorker::open_sessions() const {
  MutexLock lock(mutex_);
  return sessions_;
}

bool FakeWorker::AwaitSessions(int count) const {
  MutexLock lock(mutex_);
  const Clock::TimePoint deadline = clock_.Now() + kLate;
  while (sessions_ != count && changed_.WaitUntil(mutex_, deadline)) {
  }
  return sessions_ == count;
}

std::vector<std::string> FakeWorker::buffers() const {
  MutexLock lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [handle, bytes] : buffers_) all.push_back(bytes);
  return all;
}

std::string FakeWorker::weight(int32_t id) const {
  MutexLock lock(mutex_);
  const auto found = weights_.find(id);
  return found == weights_.end() ? "" : found->second;
}

std::vector<int64_t> FakeWorker::cancelled_steps() const {
  MutexLock lock(mutex_);
  return cancelled_steps_;
}

bool FakeWorker::AwaitCancelled(size_t count) const {
  MutexLock lock(mutex_);
  const Clock::TimePoint deadline = clock_.Now() + kLate;
  while (cancelled_steps_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
  }
  return cancelled_steps_.size() >= count;
}

void FakeWorker::EndSession(const std::string& farewell) {
  MutexLock lock(mutex_);
  farewell_ = farewell;
}

void FakeWorker::AwaitCancel(grpc::ServerContext* context) {
  MutexLock lock(mutex_);
  while (!context->IsCancelled() && !dead_) {
    changed_.WaitUntil(mutex_, clock_.Now() + std::chrono::milliseconds(5));
  }
}

grpc::Status FakeWorker::Hello(grpc::ServerContext* context, const proto::HelloRequest*,
                               proto::HelloReply* reply) {
  return Handle("Hello", context, [&] {
    WorkerHello hello;
    hello.protocol = OwnHello();
    hello.name = "fake";
    hello.incarnation = std::string(16, 'i');
    hello.host_identity = "this machine";
    WorkerDevice accel = HonestDevice(DeviceKind::kAccelerator, "main memory");
    WorkerDevice cpu = HonestDevice(DeviceKind::kCpu, "main memory");
    WorkerDevice gpu = HonestDevice(DeviceKind::kGpu, "video memory");
    gpu.pads = true;
    accel.reads = {1, 2};
    cpu.reads = {1, 2};
    gpu.reads = {0};
    hello.devices = {gpu, accel, cpu};
    hello.transports = {"grpc"};
    hello.ping_ms = 5000;
    hello.lease_ms = 20000;
    EncodeHello(hello, *reply);
    if (edit_hello) edit_hello(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::Session(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<proto::SessionReply, proto::SessionRequest>* stream) {
  return Handle("Session", context, [&] {
    proto::SessionRequest request;
    {
      MutexLock lock(mutex_);
      ++sessions_;
      changed_.NotifyAll();
    }
    bool first = true;
    bool over = false;
    while (!over && stream->Read(&request)) {
      proto::SessionReply reply;
      if (first) reply.set_session(kFakeSession);
      reply.set_ping(request.ping());
      {
        MutexLock lock(mutex_);
        reply.set_farewell(farewell_);
        over = !farewell_.empty();
      }
      if (edit_session) edit_session(reply);
      if (!silent_session && !(mute_ && !first)) stream->Write(reply);
      first = false;
    }
    MutexLock lock(mutex_);
    --sessions_;
    changed_.NotifyAll();
    return grpc::Status::OK;
  });
}

// --- data plane ---

grpc::Status FakeWorker::OpenEpoch(grpc::ServerContext* context,
                                   const proto::OpenEpochRequest* request,
                                   proto::OpenEpochReply* reply) {
  return Handle("OpenEpoch", context, [&] {
    auto plane = std::make_unique<Plane>();
    PortOptions options;
    options.epoch = request->epoch();
    options.own_number = request->own_number();
    if (auto key = SessionKey::FromBytes(request->session_key()); key.ok()) options.key = *key;
    plane->epoch = request->epoch();
    plane->coordinator = request->coordinator_number();
    plane->port = *transport_.NewPort(options);
    for (const proto::Peer& expected : request->expected()) {
      PortPeer peer{.number = expected.number(), .name = expected.name(), .token = {}};
      std::memcpy(peer.token.data(), expected.token().data(), peer.token.size());
      (void)plane->port->Expect(peer);
    }
    reply->set_address(plane->port->address());
    plane->thread = std::thread([this, raw = plane.get()] { ServePort(*raw); });
    if (edit_epoch) edit_epoch(*reply);
    MutexLock lock(mutex_);
    planes_.push_back(std::move(plane));
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::ConnectPeers(grpc::ServerContext* context,
                                      const proto::ConnectPeersRequest* request,
                                      proto::ConnectPeersReply*) {
  return Handle("ConnectPeers", context, [&] {
    MessagePort* port = nullptr;
    {
      MutexLock lock(mutex_);
      port = planes_.back()->port.get();
    }
    for (const proto::Peer& other : request->peers()) {
      PortPeer peer{.number = other.number(), .name = other.name(), .token = {}};
      std::memcpy(peer.token.data(), other.token().data(), peer.token.size());
      const absl::Status status = port->Connect(
          peer, other.address(), clock_.Now() + std::chrono::milliseconds(request->timeout_ms()));
      if (!status.ok()) {
        return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                            std::string(status.message()));
      }
    }
    return grpc::Status::OK;
  });
}

void FakeWorker::ServePort(const Plane& plane) {
  constexpr auto kExecute = static_cast<uint32_t>(MessageKind::kExecute);
  constexpr auto kCancel = static_cast<uint32_t>(MessageKind::kCancel);
  while (true) {
    absl::StatusOr<Message> message = plane.port->Receive(
        {.kinds = KindBit(kExecute) | KindBit(kCancel), .peer = plane.coordinator},
        clock_.Now() + std::chrono::hours(1), &stop_);
    if (!message.ok()) return;
    if (message->header.kind == kCancel) {
      MutexLock lock(mutex_);
      cancelled_steps_.push_back(message->header.step);
      changed_.NotifyAll();
      continue;
    }
    if (!execute) continue;
    StepRequest request;
    (void)DecodeStepRequest(message->payload, {}, request);
    std::vector<uint8_t> reply;
    EncodeStepReply(execute(message->header.step, request), reply);
    (void)SendBytes(*plane.port, plane.coordinator, ReplyHeader(plane.epoch, message->header.step),
                    reply);
  }
}

grpc::Status FakeWorker::MeasureLink(grpc::ServerContext* context,
                                     const proto::MeasureLinkRequest* request,
                                     proto::MeasureLinkReply* reply) {
  return Handle("MeasureLink", context, [&] {
    Plane* plane = nullptr;
    {
      MutexLock lock(mutex_);
      plane = planes_.back().get();
    }
    const Clock::TimePoint deadline =
        clock_.Now() + std::chrono::milliseconds(request->timeout_ms());
    reply->set_transport("grpc");
    LinkProbeOptions probe;
    probe.key = {.epoch = plane->epoch, .kind = static_cast<uint32_t>(MessageKind::kProbe)};
    if (request->initiate()) {
      const auto speed = weft::MeasureLink(*plane->port, request->peer(), probe, deadline);
      if (!speed.ok()) return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no answer");
      reply->set_latency_us(speed->latency_us);
      reply->set_bytes_per_s(speed->bytes_per_s);
    } else if (!AnswerLinkProbe(*plane->port, request->peer(), probe, deadline).ok()) {
      return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no question");
    }
    return grpc::Status::OK;
  });
}

}  // namespace weft
