#include "common/transport/ucx/ucx_worker.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/transport/strangers.h"
#include "common/transport/ucx/ucx_worker_state.h"

namespace weft {
namespace {

// Strangers of this machine cannot be pushed out, for want of a way to close them; beyond so many
// none comes in.
constexpr int64_t kMaxLocalStrangers = 4096;
// How often the time of strangers is looked at, and how long one that is refused stays, to hear
// why.
constexpr std::chrono::milliseconds kCheckPeriod{200};
constexpr std::chrono::seconds kFarewellTime{1};
// Calls of ucp_worker_progress in one Progress.
constexpr int kProgressRounds = 64;
// How long the end of a worker waits for UCX to let go of its connections.
constexpr std::chrono::seconds kCloseTime{2};

}  // namespace

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(
    std::shared_ptr<UcxContext> context, const std::vector<SocketAddress>& listen_at,
    UcxWorkerEvents& events, PayloadPool& pool) {
  auto worker = absl::WrapUnique(new UcxWorker(std::move(context), events, pool));
  RETURN_IF_ERROR(worker->Start(listen_at));
  return worker;
}

UcxWorker::UcxWorker(std::shared_ptr<UcxContext> context, UcxWorkerEvents& events,
                     PayloadPool& pool)
    : context_(std::move(context)), events_(events), pool_(pool) {}

absl::Status UcxWorker::Start(const std::vector<SocketAddress>& listen_at) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  ucs_status_t status = ucp_worker_create(context_->handle(), &params, &worker_);
  if (status != UCS_OK) {
    worker_ = nullptr;
    return UcxError("UCX makes no worker", status);
  }
  status = ucp_worker_get_efd(worker_, &event_descriptor_);
  if (status != UCS_OK) return UcxError("UCX has no event descriptor", status);
  RETURN_IF_ERROR(SetHandler(kHelloMessage, &OnHelloMessage));
  RETURN_IF_ERROR(SetHandler(kChallengeMessage, &OnControlMessage<kChallengeMessage>));
  RETURN_IF_ERROR(SetHandler(kProofMessage, &OnControlMessage<kProofMessage>));
  RETURN_IF_ERROR(SetHandler(kRefusalMessage, &OnControlMessage<kRefusalMessage>));
  RETURN_IF_ERROR(SetHandler(kDataMessage, &OnDataMessage));
  return Listen(listen_at);
}

absl::Status UcxWorker::SetHandler(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t param = {};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  param.id = id;
  param.cb = callback;
  param.arg = this;
  param.flags = UCP_AM_FLAG_WHOLE_MSG;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &param);
  if (status != UCS_OK) return UcxError("UCX takes no message handler", status);
  return absl::OkStatus();
}

absl::Status UcxWorker::Listen(const std::vector<SocketAddress>& listen_at) {
  ucs_status_t status = UCS_ERR_INVALID_PARAM;
  for (const SocketAddress& address : listen_at) {
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address.storage);
    params.sockaddr.addrlen = address.length;
    params.conn_handler.cb = &OnConnectionRequest;
    params.conn_handler.arg = this;
    status = ucp_listener_create(worker_, &params, &listener_);
    if (status != UCS_OK) {
      listener_ = nullptr;
      continue;
    }
    ucp_listener_attr_t attributes = {};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    status = ucp_listener_query(listener_, &attributes);
    if (status != UCS_OK) return UcxError("UCX does not tell where it listens", status);
    listen_address_ = {.storage = attributes.sockaddr, .length = address.length};
    return absl::OkStatus();
  }
  const std::string where = listen_at.empty() ? "nowhere" : SocketAddressText(listen_at.back());
  return UcxError(absl::StrCat("cannot listen at ", where).c_str(), status);
}

void UcxWorker::StopListening() {
  if (listener_ == nullptr) return;
  for (Deferred& deferred : deferred_) {
    if (deferred.request != nullptr) (void)ucp_listener_reject(listener_, deferred.request);
  }
  std::erase_if(deferred_, [](const Deferred& deferred) { return deferred.request != nullptr; });
  ucp_listener_destroy(listener_);
  listener_ = nullptr;
  // Whoever is not a peer by now will not be one.
  next_check_ = {};
  for (const auto& connection : connections_) {
    if (connection->accepted && !connection->proven) connection->end = clock_.Now();
  }
}

UcxWorker::~UcxWorker() {
  if (worker_ == nullptr) return;
  StopListening();
  deferred_.clear();
  if (MustNotDestroy()) {
    // What UCX may still touch is left to it.
    for (auto& send : sends_) (void)send.release();
    for (auto& fetch : fetches_) (void)fetch.release();
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): on purpose, the context too
    (void)std::make_unique<std::shared_ptr<UcxContext>>(context_).release();
    return;
  }
  // It ends all endpoints, whatever is on its way over them; after it nothing reads or writes the
  // memory of sends_ and fetches_.
  ucp_worker_destroy(worker_);
}

bool UcxWorker::MustNotDestroy() {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + kCloseTime;
  if (mode() == UcxMode::kLocal) {
    // What is being read out of another process's memory goes on with each call and needs nobody on
    // the other side; to destroy the worker in between would end this process.
    while (!fetches_.empty() && clock.Now() < deadline && ucp_worker_progress(worker_) != 0) {
    }
    // Messages that wait for a connection to be made.
    return std::any_of(sends_.begin(), sends_.end(), [](const auto& send) {
      return send->connection != nullptr && !send->connection->heard && !send->connection->failed;
    });
  }
  // Large messages on their way, until their connections have been closed by force.
  while (!connections_.empty()) Close(*connections_.front());
  while (closes_pending_ > 0 && clock.Now() < deadline) {
    if (ucp_worker_progress(worker_) == 0) sched_yield();
  }
  return closes_pending_ > 0;
}

bool UcxWorker::Progress() {
  bool any = false;
  for (int round = 0; round < kProgressRounds && ucp_worker_progress(worker_) != 0; ++round) {
    any = true;
  }
  if (unproven_ > 0) EndStrangers();
  return Report() || any;
}

bool UcxWorker::Arm() { return ucp_worker_arm(worker_) == UCS_OK; }

bool UcxWorker::Report() {
  bool any = false;
  while (!deferred_.empty()) {
    any = true;
    Deferred deferred = std::move(deferred_.front());
    deferred_.pop_front();
    if (deferred.request != nullptr) {
      Accept(deferred.request);
      continue;
    }
    if (deferred.connection == nullptr) continue;
    switch (deferred.what) {
      case Deferred::What::kHello:
        events_.OnHello(*deferred.connection, deferred.bytes);
        break;
      case Deferred::What::kLost:
        events_.OnLost(*deferred.connection, deferred.status);
        break;
      case Deferred::What::kRequest:
        break;
    }
  }
  return any;
}

// --- connections -----------------------------------------------------------------------------

void UcxWorker::OnConnectionRequest(ucp_conn_request_h request, void* self) {
  auto& worker = *static_cast<UcxWorker*>(self);
  Deferred& deferred = worker.deferred_.emplace_back();
  deferred.what = Deferred::What::kRequest;
  deferred.request = request;
}

void UcxWorker::OnError(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  auto& worker = *static_cast<UcxWorker*>(self);
  const auto found = worker.by_endpoint_.find(endpoint);
  if (found == worker.by_endpoint_.end() || found->second->failed) return;
  found->second->failed = true;
  Deferred& deferred = worker.deferred_.emplace_back();
  deferred.what = Deferred::What::kLost;
  deferred.connection = found->second;
  deferred.status = absl::UnavailableError(ucs_status_string(status));
}

absl::StatusOr<UcxConnection*> UcxWorker::AddConnection(ucp_ep_params_t& params) {
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = context_->error_mode();
  params.err_handler.cb = &OnError;
  params.err_handler.arg = this;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint);
  if (status != UCS_OK) return UcxError("UCX makes no endpoint", status);
  UcxConnection& connection = *connections_.emplace_back(std::make_unique<UcxConnection>());
  connection.worker = this;
  connection.endpoint = endpoint;
  by_endpoint_[endpoint] = &connection;
  return &connection;
}

absl::StatusOr<UcxConnection*> UcxWorker::Connect(const SocketAddress& address) {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address.storage);
  params.sockaddr.addrlen = address.length;
  return AddConnection(params);
}

bool UcxWorker::LimitStrangers() {
  std::vector<UcxConnection*> strangers;
  std::vector<std::string> hosts;
  for (const auto& connection : connections_) {
    if (!connection->accepted || connection->proven) continue;
    strangers.push_back(connection.get());
    hosts.emplace_back(HostOf(connection->from));
  }
  const auto count = static_cast<int64_t>(strangers.size());
  if (mode() == UcxMode::kLocal) return count < kMaxLocalStrangers;
  if (count < kMaxStrangers) return true;
  UcxConnection& leaves = *strangers[StrangerToDrop(hosts)];
  events_.OnDrop(leaves, Refusal::kTooMany);
  Close(leaves);
  return true;
}

void UcxWorker::EndStrangers() {
  const Clock::TimePoint now = clock_.Now();
  if (now < next_check_) return;
  next_check_ = now + kCheckPeriod;
  std::vector<UcxConnection*> over;
  for (const auto& connection : connections_) {
    if (connection->accepted && !connection->proven && !connection->abandoned &&
        now >= connection->end) {
      over.push_back(connection.get());
    }
  }
  for (UcxConnection* connection : over) {
    if (!connection->refused) {
      connection->end = now + kFarewellTime;
      events_.OnDrop(*connection, Refusal::kTooLate);
    } else {
      Close(*connection);
    }
  }
}

void UcxWorker::SetProven(UcxConnection& connection) {
  if (connection.accepted && !connection.proven && !connection.abandoned) --unproven_;
  connection.proven = true;
  connection.handshake.reset();
}

void UcxWorker::Accept(ucp_conn_request_h request) {
  if (!LimitStrangers()) {
    (void)ucp_listener_reject(listener_, request);
    return;
  }
  ucp_conn_request_attr_t from = {};
  from.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  const bool known = ucp_conn_request_query(request, &from) == UCS_OK;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  // An error means that the other side has given up meanwhile.
  const absl::StatusOr<UcxConnection*> connection = AddConnection(params);
  if (!connection.ok()) return;
  (*connection)->accepted = true;
  (*connection)->end = clock_.Now() + kProofTime;
  ++unproven_;
  if (known) {
    const SocketAddress address = {.storage = from.client_address,
                                   .length = sizeof from.client_address};
    (*connection)->from = SocketAddressText(address);
  }
}

void UcxWorker::Close(UcxConnection& connection) {
  if (mode() == UcxMode::kLocal && !connection.heard && !connection.failed) {
    // Closing it now would leave UCX with something that ends the process in ucp_worker_destroy. It
    // is nobody's from now on.
    connection.peer = -1;
    if (connection.accepted && !connection.proven && !connection.abandoned) --unproven_;
    connection.abandoned = true;
    return;
  }
  if (connection.accepted && !connection.proven && !connection.abandoned) --unproven_;
  for (const auto& send : sends_) {
    if (send->connection == &connection) send->connection = nullptr;
  }
  for (Deferred& deferred : deferred_) {
    if (deferred.connection == &connection) deferred.connection = nullptr;
  }
  by_endpoint_.erase(connection.endpoint);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = context_->error_mode() == UCP_ERR_HANDLING_MODE_PEER ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  ucs_status_ptr_t request = ucp_ep_close_nbx(connection.endpoint, &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  connections_.remove_if([&](const auto& other) { return other.get() == &connection; });
}

std::string UcxWorker::TransportNames(const UcxConnection& connection) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return "";
  ucp_ep_print_info(connection.endpoint, stream);
  (void)std::fclose(stream);
  // A line of a lane: "# lane[1]:  5:posix/memory.0 md[4]  -> ...".
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text, size), '\n')) {
    const size_t lane = line.find("lane[");
    const size_t slash = line.find('/', lane == absl::string_view::npos ? 0 : lane);
    if (lane == absl::string_view::npos || slash == absl::string_view::npos) continue;
    const size_t colon = line.rfind(':', slash);
    const std::string name(line.substr(colon + 1, slash - colon - 1));
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!known && name.find(' ') == std::string::npos) names.push_back(name);
  }
  free(text);
  std::string joined;
  for (const std::string& name : names) absl::StrAppend(&joined, joined.empty() ? "" : "+", name);
  return joined;
}

}  // namespace weft
