#include "rpc_backend/client/worker_connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"
#include "common/base/error_scope.h"
#include "common/base/status_macros.h"
#include "common/tls/tls_probe.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"
#include "rpc_backend/protocol/status_codec.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

std::string Target(const HostAddress& address) {
  if (!address.socket_path.empty()) return absl::StrCat("unix:", address.socket_path);
  return absl::StrCat("dns:///", address.Text());
}

// Each has a connection of its own. `answers_within`, if not 0: while calls are in progress it is
// asked all the time whether it still moves, and broken where that stays without an answer. That
// is not for one with much in its buffers.
absl::StatusOr<std::unique_ptr<proto::Worker::Stub>> NewStub(
    const HostAddress& address, const RemoteWorkerOptions& options, const WireLimits& limits,
    std::chrono::milliseconds answers_within) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsTowards(options.security, address));
  grpc::ChannelArguments arguments = OwnConnection();
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits.control_message_bytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits.control_message_bytes));
  if (!options.tls_name.empty()) arguments.SetSslTargetNameOverride(options.tls_name);
  if (answers_within.count() > 0) {
    const auto pause = static_cast<int>(answers_within.count() / 5);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, pause);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                     static_cast<int>(answers_within.count()) - pause);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
  }
  return proto::Worker::NewStub(grpc::CreateCustomChannel(Target(address), credentials, arguments));
}

// How gRPC begins what it says of a connection that gave no answer.
constexpr absl::string_view kKeepaliveWords = "keepalive";

std::string SecondsText(std::chrono::milliseconds time) {
  return absl::StrFormat("%g s", std::chrono::duration<double>(time).count());
}

absl::Status CheckOptions(const RemoteWorkerOptions& options) {
  const auto positive = [](std::chrono::milliseconds time) { return time.count() > 0; };
  if (!positive(options.connect_timeout) || !positive(options.call_timeout) ||
      !positive(options.stall_timeout) || !positive(options.disk_timeout) ||
      !positive(options.ping_period) || !positive(options.loss_after)) {
    return absl::InvalidArgumentError("times of a worker's connection are positive");
  }
  if (options.loss_after < 2 * options.ping_period) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker cannot be lost after ", SecondsText(options.loss_after),
                     " when pings are ", SecondsText(options.ping_period), " apart"));
  }
  if (options.name.empty()) return absl::InvalidArgumentError("a worker without a name");
  return absl::OkStatus();
}

}  // namespace

// --- Call ---

WorkerConnection::Call::Call(WorkerConnection& connection, std::chrono::milliseconds timeout)
    : connection_(connection), timeout_(timeout), stall_(0), cancel_(nullptr) {
  context_.set_deadline(GrpcDeadlineIn(timeout));
  Begin();
}

WorkerConnection::Call::Call(WorkerConnection& connection, std::chrono::milliseconds stall,
                             const std::atomic<bool>* cancel)
    : connection_(connection), timeout_(0), stall_(stall), cancel_(cancel) {
  Begin();
}

void WorkerConnection::Call::Begin() {
  Moved();
  MutexLock lock(connection_.mutex_);
  place_ = connection_.calls_.insert(connection_.calls_.end(), this);
  if (!connection_.lost_.ok()) context_.TryCancel();
}

WorkerConnection::Call::~Call() {
  MutexLock lock(connection_.mutex_);
  connection_.calls_.erase(place_);
}

void WorkerConnection::Call::SetVerb(std::string_view verb) {
  MutexLock lock(connection_.mutex_);
  verb_ = verb;
}

void WorkerConnection::Call::Moved() { moved_ = connection_.clock_.Now(); }

absl::Status WorkerConnection::Call::Result(std::string_view verb, const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && connection_.session_ != 0) {
    connection_.AwaitLoss();
  }
  if (absl::Status lost = connection_.lost(); !lost.ok()) return lost;
  if (stalled_) {
    return connection_.Error(absl::StatusCode::kDeadlineExceeded, verb,
                             absl::StrCat("nothing moved for ", SecondsText(stall_)));
  }
  if (cancelled_) return connection_.Error(absl::StatusCode::kCancelled, verb, "cancelled");
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return connection_.Error(absl::StatusCode::kDeadlineExceeded, verb,
                             absl::StrCat("did not finish in ", SecondsText(timeout_)));
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      absl::StrContains(status.error_message(), kKeepaliveWords)) {
    return WithScope(connection_.Error(absl::StatusCode::kUnavailable, verb,
                                       absl::StrCat("its connection did not move for ",
                                                    SecondsText(connection_.options_.loss_after))),
                     ErrorScope::kWorker);
  }
  const absl::Status clean = StatusFromWire(status.error_code(), status.error_message());
  // What gRPC says of a call that the worker does not know, and of a reply that is no message.
  const bool unusable = absl::IsUnimplemented(clean);
  return connection_.Error(unusable ? absl::StatusCode::kInternal : clean.code(), verb,
                           StdView(clean.message()));
}

// --- WorkerConnection ---

absl::StatusOr<std::shared_ptr<WorkerConnection>> WorkerConnection::Open(
    RemoteWorkerOptions options, Logger* logger) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(HostAddress address, ParseHostAddress(options.address, kDefaultWorkerPort));
  // Shared by the worker and its buffers.
  std::shared_ptr<WorkerConnection> connection(
      new WorkerConnection(std::move(options), std::move(address), logger));
  RETURN_IF_ERROR(connection->Start());
  return connection;
}

absl::StatusOr<WorkerHello> WorkerConnection::Greet(RemoteWorkerOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(HostAddress address, ParseHostAddress(options.address, kDefaultWorkerPort));
  WorkerConnection connection(std::move(options), std::move(address), nullptr);
  ASSIGN_OR_RETURN(connection.stub_, NewStub(connection.address_, connection.options_,
                                             connection.limits_, std::chrono::milliseconds(0)));
  const absl::Status hello = connection.Hello(connection.options_.connect_timeout);
  if (!hello.ok()) return connection.WhyNot(hello);
  return connection.hello_;
}

WorkerConnection::WorkerConnection(RemoteWorkerOptions options, HostAddress address, Logger* logger)
    : options_(std::move(options)),
      address_(std::move(address)),
      label_(absl::StrCat("worker ", options_.name, " (", address_.Text(), ")")),
      logger_(logger) {}

WorkerConnection::~WorkerConnection() {
  if (stream_ != nullptr) Close();
}

absl::Status WorkerConnection::Start() {
  constexpr std::chrono::milliseconds kNever{0};
  ASSIGN_OR_RETURN(stub_, NewStub(address_, options_, limits_, options_.loss_after));
  // It has pings of its own.
  ASSIGN_OR_RETURN(session_stub_, NewStub(address_, options_, limits_, kNever));
  const Clock::TimePoint deadline = clock_.Now() + options_.connect_timeout;
  if (absl::Status hello = Hello(options_.connect_timeout); !hello.ok()) return WhyNot(hello);
  if (hello_.draining) {
    return absl::UnavailableError(absl::StrCat(label_, " is draining: it takes no new sessions"));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.Now());
  RETURN_IF_ERROR(OpenSession(std::max(left, std::chrono::milliseconds(1))));
  frees_ = std::make_unique<FreeQueue>([this](int64_t handle) { FreeNow(handle); });
  return frees_->Start();
}

absl::Status WorkerConnection::WhyNot(const absl::Status& error) {
  if (!absl::IsUnavailable(error) && !absl::IsDeadlineExceeded(error)) return error;
  constexpr std::chrono::milliseconds kProbeTime{1000};
  const GrpcTls* const tls = options_.security.tls;
  const TlsExplanation why = ExplainTlsFailure(address_, {TlsRole::kWorker, options_.tls_name},
                                               tls == nullptr ? nullptr : &tls->folder(), clock_,
                                               clock_.Now() + kProbeTime);
  if (why.text.empty()) return error;
  // Where that is certain it is there, and will answer no differently: no worker was lost.
  const absl::StatusCode code = why.certain ? absl::StatusCode::kFailedPrecondition : error.code();
  return absl::Status(code, absl::StrCat(label_, ": ", why.text));
}

absl::Status WorkerConnection::OpenSession(std::chrono::milliseconds timeout) {
  SessionStreamOptions stream;
  stream.coordinator = options_.coordinator;
  stream.ping_period = options_.ping_period;
  stream.loss_after = options_.loss_after;
  stream.on_end = [this](const std::string& why) { Lose(why); };
  stream.on_tick = [this] { EndStalledCalls(); };
  auto opened = SessionStream::Open(*session_stub_, std::move(stream), timeout);
  if (!opened.ok()) {
    return Error(opened.status().code(), "Session", StdView(opened.status().message()));
  }
  session_ = (*opened)->session();
  stream_ = *std::move(opened);
  return absl::OkStatus();
}

absl::Status WorkerConnection::Hello(std::chrono::milliseconds timeout) {
  CoordinatorHello own{.protocol = OwnHello(), .name = options_.coordinator};
  proto::HelloRequest request;
  proto::HelloReply reply;
  EncodeHello(own, request);
  Call call(*this, timeout);
  RETURN_IF_ERROR(call.Result("Hello", stub_->Hello(&call.context(), request, &reply)));
  absl::StatusOr<WorkerHello> decoded = DecodeHello(reply, limits_);
  if (!decoded.ok()) return Nonsense("Hello", StdView(decoded.status().message()));
  RETURN_IF_ERROR(CheckHello(own.protocol, "coordinator", decoded->protocol, label_));
  hello_ = *std::move(decoded);
  return absl::OkStatus();
}

absl::Status WorkerConnection::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

int64_t WorkerConnection::AddLossListener(std::function<void(const absl::Status&)> listener) {
  absl::Status lost;
  int64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = next_listener_++;
    if (lost_.ok()) {
      listeners_[number] = std::move(listener);
      return number;
    }
    lost = lost_;
  }
  if (!absl::IsCancelled(lost)) listener(lost);
  return number;
}

void WorkerConnection::RemoveLossListener(int64_t number) {
  MutexLock lock(mutex_);
  listeners_.erase(number);
  while (telling_) changed_.Wait(mutex_);
}

void WorkerConnection::Lose(const std::string& why) {
  const absl::Status lost =
      WithScope(absl::UnavailableError(absl::StrCat(label_, " ", why)), ErrorScope::kWorker);
  std::map<int64_t, std::function<void(const absl::Status&)>> listeners;
  {
    MutexLock lock(mutex_);
    if (!lost_.ok()) return;
    lost_ = lost;
    CancelAllCalls();
    listeners.swap(listeners_);
    telling_ = true;
    changed_.NotifyAll();
  }
  if (logger_ != nullptr) logger_->Warning(StdView(lost.message()));
  for (auto& [number, listener] : listeners) listener(lost);
  MutexLock lock(mutex_);
  telling_ = false;
  changed_.NotifyAll();
}

void WorkerConnection::CancelAllCalls() {
  for (Call* call : calls_) call->context_.TryCancel();
}

void WorkerConnection::CancelCalls(std::string_view verb) {
  MutexLock lock(mutex_);
  for (Call* call : calls_) {
    if (call->verb_ != verb) continue;
    call->cancelled_ = true;
    call->context_.TryCancel();
  }
}

void WorkerConnection::EndStalledCalls() {
  const Clock::TimePoint now = clock_.Now();
  MutexLock lock(mutex_);
  for (Call* call : calls_) {
    if (call->timeout_.count() > 0) continue;
    if (call->cancel_ != nullptr && call->cancel_->load()) {
      call->cancelled_ = true;
    } else if (now - call->moved_.load() > call->stall_) {
      call->stalled_ = true;
    } else {
      continue;
    }
    call->context_.TryCancel();
  }
}

void WorkerConnection::Close() {
  {
    MutexLock lock(mutex_);
    if (lost_.ok())
      lost_ = absl::CancelledError(absl::StrCat("the session with ", label_, " is closed"));
    CancelAllCalls();
    listeners_.clear();
    changed_.NotifyAll();
  }
  if (frees_ != nullptr) frees_->Stop();
  stream_->Close();
}

void WorkerConnection::AwaitLoss() {
  MutexLock lock(mutex_);
  const Clock::TimePoint deadline = clock_.Now() + options_.ping_period;
  while (lost_.ok() && changed_.WaitUntil(mutex_, deadline)) {
  }
}

absl::Status WorkerConnection::Explain(const absl::Status& error) {
  if (!absl::IsUnavailable(error)) return error;
  AwaitLoss();
  absl::Status cause = lost();
  return cause.ok() ? error : cause;
}

uint32_t WorkerConnection::last_epoch() const {
  MutexLock lock(mutex_);
  return last_epoch_;
}

void WorkerConnection::UseEpoch(uint32_t epoch) {
  MutexLock lock(mutex_);
  last_epoch_ = std::max(last_epoch_, epoch);
}

absl::Status WorkerConnection::CheckReply(std::string_view verb,
                                          const google::protobuf::Message& reply) const {
  const absl::Status status = CheckMessage(reply, limits_);
  return status.ok() ? status : Nonsense(verb, StdView(status.message()));
}

absl::Status WorkerConnection::Nonsense(std::string_view verb, std::string_view text) const {
  return Error(absl::StatusCode::kInternal, verb,
               absl::StrCat("its reply makes no sense: ", AbslView(text)));
}

absl::Status WorkerConnection::Error(absl::StatusCode code, std::string_view verb,
                                     std::string_view text) const {
  return absl::Status(code, absl::StrCat(label_, ": ", AbslView(verb), ": ", AbslView(text)));
}

void WorkerConnection::FlushFrees() { frees_->Flush(clock_.Now() + options_.call_timeout); }

void WorkerConnection::FreeNow(int64_t handle) {
  proto::FreeBufferRequest request;
  proto::FreeBufferReply reply;
  request.set_buffer(handle);
  const absl::Status status =
      Invoke("FreeBuffer", &proto::Worker::Stub::FreeBuffer, request, reply);
  if (!lost().ok()) {
    frees_->Stop();
  } else if (!status.ok() && logger_ != nullptr) {
    logger_->Warning(StdView(status.message()));
  }
}

}  // namespace weft
