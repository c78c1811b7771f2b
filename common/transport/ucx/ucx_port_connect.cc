// How connections of a UCX port begin and end.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/ucx/ucx_port.h"

namespace weft {

absl::Status UcxPort::Expect(const PortPeer& peer) {
  MutexLock lock(mutex_);
  return inbox_.AddPeer(peer);
}

absl::StatusOr<UcxPort::Route> UcxPort::ChooseRoute(const PortAddress& address) const {
  Route route;
  std::string text;
  if (local_ != nullptr && !address.local.empty() && address.host_identity == host_identity_) {
    route.worker = local_.get();
    text = address.local;
  } else if (remote_ != nullptr && !address.remote.empty()) {
    route.worker = remote_.get();
    text = address.remote;
  } else {
    return absl::UnavailableError(
        address.remote.empty()
            ? "it serves only its own machine (its data address is a loopback one)"
            : "this process serves only its own machine");
  }
  ASSIGN_OR_RETURN(route.address, ParseSocketAddress(text));
  if (route.address.storage.ss_family != route.worker->listen_address().storage.ss_family) {
    return absl::UnavailableError("one side has an IPv4 data address and the other an IPv6 one");
  }
  return route;
}

absl::Status UcxPort::StartConnect(const PortPeer& peer, const Route& route) {
  ASSIGN_OR_RETURN(UcxConnection * connection, route.worker->Connect(route.address));
  connection->peer = peer.number;
  Link& link = links_[peer.number];
  link = Link();
  link.connection = connection;
  return route.worker->SendControl(*connection, kHelloMessage,
                                   EncodeHello({.session = options_.session,
                                                .from = options_.own_number,
                                                .to = peer.number,
                                                .token = peer.token}));
}

absl::Status UcxPort::Connect(const PortPeer& peer, std::string_view address,
                              Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const PortAddress parsed, ParsePortAddress(address));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(inbox_.AddPeer(peer));
  const std::string name = inbox_.PeerText(peer.number);
  absl::StatusOr<Route> route = ChooseRoute(parsed);
  absl::Status status = route.ok() ? StartConnect(peer, *route) : route.status();
  if (status.ok()) {
    Nudge();
    Inbox::Waiter waiter({.kinds = 0});
    const Link& link = links_[peer.number];
    const bool in_time = Await(waiter, deadline, [&] {
      return link.answered || !link.failed.ok() || !inbox_.aborted().ok();
    });
    if (link.answered) return absl::OkStatus();
    status = !in_time           ? absl::DeadlineExceededError("no answer before the deadline")
             : link.failed.ok() ? inbox_.aborted()
                                : link.failed;
  }
  const auto link = links_.find(peer.number);
  if (link != links_.end()) {
    if (link->second.connection != nullptr) {
      link->second.connection->worker->Close(*link->second.connection);
    }
    links_.erase(link);
  }
  inbox_.RemovePeer(peer.number);
  if (!inbox_.aborted().ok()) return inbox_.aborted();
  return {status.code(), absl::StrCat(name, ": connecting to ",
                                      route.ok() ? SocketAddressText(route->address) : "it",
                                      " failed: ", status.message())};
}

absl::Status UcxPort::AwaitPeers(Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  Inbox::Waiter waiter({.kinds = 0});
  std::optional<absl::Status> result;
  Await(waiter, deadline, [&] {
    result = inbox_.AllConnected();
    return result.has_value();
  });
  return result.has_value() ? *result : inbox_.PeersMissing();
}

void UcxPort::StopListening() {
  MutexLock lock(mutex_);
  for (UcxWorker* worker : workers_) worker->StopListening();
}

bool UcxPort::Admits(const Hello& hello) {
  const PortPeer* expected = inbox_.FindPeer(hello.from);
  return hello.session == options_.session && hello.to == options_.own_number &&
         expected != nullptr && SameToken(expected->token, hello.token) &&
         !links_.contains(hello.from) && inbox_.aborted().ok();
}

// A hello is answered, and the answer confirmed: so this side never takes for a peer what the other
// side has given up.
void UcxPort::OnHello(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  if (!connection.accepted || connection.peer >= 0 || connection.candidate >= 0) return;
  const std::optional<Hello> hello = DecodeHello(bytes);
  const bool welcome = hello.has_value() && Admits(*hello);
  if (welcome) connection.candidate = hello->from;
  // Where it is refused the other side hangs up; if it does not, it stays a stranger, of whom there
  // are few.
  const auto answer = EncodeAnswer(welcome ? Answer::kWelcome : Answer::kRefused);
  (void)connection.worker->SendControl(connection, kAnswerMessage, answer);
}

void UcxPort::Confirmed(UcxConnection& connection) {
  const int32_t peer = connection.candidate;
  if (connection.peer >= 0 || peer < 0 || links_.contains(peer)) return;
  connection.peer = peer;
  Link& link = links_[peer];
  link.connection = &connection;
  link.answered = true;
  inbox_.ConnectPeer(peer, UcxWorker::TransportNames(connection));
}

void UcxPort::OnAnswer(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  const std::optional<Answer> answer = DecodeAnswer(bytes);
  if (connection.accepted) {
    if (answer == Answer::kWelcome) Confirmed(connection);
    return;
  }
  const auto link = links_.find(connection.peer);
  if (link == links_.end() || link->second.connection != &connection || link->second.answered) {
    return;
  }
  if (answer != Answer::kWelcome) {
    link->second.failed = absl::UnavailableError("it refused the connection");
  } else if (connection.worker
                 ->SendControl(connection, kAnswerMessage, EncodeAnswer(Answer::kWelcome))
                 .ok()) {
    link->second.answered = true;
    inbox_.ConnectPeer(connection.peer, UcxWorker::TransportNames(connection));
  }
  inbox_.WakeAll();
}

void UcxPort::OnLost(UcxConnection& connection, const absl::Status& why) {
  const auto link = links_.find(connection.peer);
  if (link == links_.end() || link->second.connection != &connection) {
    connection.worker->Close(connection);
    return;
  }
  if (link->second.answered) {
    inbox_.LosePeer(connection.peer, why);
  } else {
    link->second.failed = why;
  }
  inbox_.WakeAll();
  // Closing by force ends what was on its way. Without peer error handling UCX refuses that, and a
  // connection that is left alone does no harm until the worker ends.
  if (connection.worker->mode() == UcxMode::kRemote) {
    link->second.connection = nullptr;
    connection.worker->Close(connection);
  }
}

}  // namespace weft
