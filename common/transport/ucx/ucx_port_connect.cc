// How connections of a UCX port begin and end.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
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

absl::Status UcxPort::StartConnect(const PortPeer& peer, const Route& route,
                                   std::string_view address) {
  ASSIGN_OR_RETURN(const PeerNonce nonce, NewPeerNonce());
  ASSIGN_OR_RETURN(UcxConnection * connection, route.worker->Connect(route.address));
  connection->peer = peer.number;
  connection->handshake =
      std::make_unique<PeerHandshake>(PeerHandshake{.session = options_.session,
                                                    .connector = options_.own_number,
                                                    .listener = peer.number,
                                                    .token = peer.token,
                                                    .connector_nonce = nonce,
                                                    .listener_nonce = {},
                                                    .connector_address = address_digest_,
                                                    .listener_address = DigestOfAddress(address)});
  Link& link = links_[peer.number];
  link = Link();
  link.connection = connection;
  return route.worker->SendControl(*connection, kHelloMessage,
                                   EncodeHello({.session = options_.session,
                                                .from = options_.own_number,
                                                .to = peer.number,
                                                .nonce = nonce,
                                                .address = address_digest_}));
}

absl::Status UcxPort::Connect(const PortPeer& peer, std::string_view address,
                              Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const PortAddress parsed, ParsePortAddress(address));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(inbox_.AddPeer(peer));
  const std::string name = inbox_.PeerText(peer.number);
  absl::StatusOr<Route> route = ChooseRoute(parsed);
  absl::Status status = route.ok() ? StartConnect(peer, *route, address) : route.status();
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

// --- the side that was connected to ---

const PortPeer* UcxPort::Admit(const Hello& hello) {
  if (hello.session != options_.session || hello.to != options_.own_number ||
      links_.contains(hello.from) || !inbox_.aborted().ok()) {
    return nullptr;
  }
  return inbox_.FindPeer(hello.from);
}

absl::StatusOr<Challenge> UcxPort::MakeChallenge(const Hello& hello, const PortPeer& peer,
                                                 UcxConnection& connection) {
  Challenge challenge;
  ASSIGN_OR_RETURN(challenge.nonce, NewPeerNonce());
  connection.handshake =
      std::make_unique<PeerHandshake>(PeerHandshake{.session = options_.session,
                                                    .connector = hello.from,
                                                    .listener = options_.own_number,
                                                    .token = peer.token,
                                                    .connector_nonce = hello.nonce,
                                                    .listener_nonce = challenge.nonce,
                                                    .connector_address = hello.address,
                                                    .listener_address = address_digest_});
  ASSIGN_OR_RETURN(challenge.proof,
                   ProveSide(options_.key, PeerSide::kListener, *connection.handshake));
  return challenge;
}

void UcxPort::OnHello(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  if (connection.proven || connection.refused) return;
  const std::optional<Hello> hello = DecodeHello(bytes);
  if (!hello.has_value()) return Refuse(connection, Refusal::kNoHello);
  const PortPeer* peer = Admit(*hello);
  if (peer == nullptr) return Refuse(connection, Refusal::kNotExpected);
  const absl::StatusOr<Challenge> challenge = MakeChallenge(*hello, *peer, connection);
  if (!challenge.ok()) return Refuse(connection, Refusal::kNoMemory);
  (void)connection.worker->SendControl(connection, kChallengeMessage, EncodeChallenge(*challenge));
}

void UcxPort::OnProof(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  if (!connection.accepted || connection.refused) return;
  if (connection.handshake == nullptr) return Refuse(connection, Refusal::kNoHello);
  const std::optional<PeerMac> proof = DecodeProof(bytes);
  if (!proof.has_value() ||
      !IsProofOf(options_.key, PeerSide::kConnector, *connection.handshake, *proof)) {
    return Refuse(connection, Refusal::kWrongProof);
  }
  const int32_t peer = connection.handshake->connector;
  // It may have been faster over another connection.
  if (links_.contains(peer) || !inbox_.aborted().ok()) {
    return Refuse(connection, Refusal::kNotExpected);
  }
  connection.worker->SetProven(connection);
  connection.peer = peer;
  Link& link = links_[peer];
  link.connection = &connection;
  link.answered = true;
  inbox_.ConnectPeer(peer, UcxWorker::TransportNames(connection));
}

void UcxPort::Refuse(UcxConnection& connection, Refusal why) {
  if (connection.proven || connection.refused) return;
  connection.refused = true;
  connection.handshake.reset();
  refusals_.Add(connection.from, RefusalText(why));
  // It hangs up, or is closed a little later. One that never said a word cannot be told.
  if (!connection.heard || connection.failed) return;
  (void)connection.worker->SendControl(connection, kRefusalMessage, EncodeRefusal(why));
}

void UcxPort::OnDrop(UcxConnection& connection, Refusal why) {
  Refuse(connection, why);
  connection.refused = true;
}

// --- the side that connected ---

UcxPort::Link* UcxPort::FindPending(const UcxConnection& connection) {
  const auto link = links_.find(connection.peer);
  if (link == links_.end() || link->second.connection != &connection || link->second.answered ||
      !link->second.failed.ok()) {
    return nullptr;
  }
  return &link->second;
}

absl::Status UcxPort::AnswerChallenge(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  const std::optional<Challenge> challenge = DecodeChallenge(bytes);
  if (!challenge.has_value() || connection.handshake == nullptr) {
    return absl::UnavailableError("its challenge is of another version, or none");
  }
  PeerHandshake& handshake = *connection.handshake;
  handshake.listener_nonce = challenge->nonce;
  if (!IsProofOf(options_.key, PeerSide::kListener, handshake, challenge->proof)) {
    (void)connection.worker->SendControl(connection, kRefusalMessage,
                                         EncodeRefusal(Refusal::kWrongProof));
    return absl::UnavailableError("its proof of the session's key is wrong");
  }
  ASSIGN_OR_RETURN(const PeerMac proof, ProveSide(options_.key, PeerSide::kConnector, handshake));
  return connection.worker->SendControl(connection, kProofMessage, EncodeProof(proof));
}

void UcxPort::OnChallenge(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  if (connection.accepted) return Refuse(connection, Refusal::kNoHello);
  Link* link = FindPending(connection);
  if (link == nullptr) return;
  link->failed = AnswerChallenge(connection, bytes);
  if (link->failed.ok()) {
    connection.worker->SetProven(connection);
    link->answered = true;
    inbox_.ConnectPeer(connection.peer, UcxWorker::TransportNames(connection));
  }
  inbox_.WakeAll();
}

// --- both ---

void UcxPort::OnControl(UcxConnection& connection, unsigned id, absl::Span<const uint8_t> bytes) {
  if (id == kChallengeMessage) OnChallenge(connection, bytes);
  if (id == kProofMessage) OnProof(connection, bytes);
  if (id == kRefusalMessage) OnRefusal(connection, bytes);
}

void UcxPort::OnRefusal(UcxConnection& connection, absl::Span<const uint8_t> bytes) {
  const std::optional<Refusal> why = DecodeRefusal(bytes);
  if (connection.accepted) {
    // It did not like this side's proof: both have other keys, or it is not who it says.
    return Refuse(connection, Refusal::kWrongProof);
  }
  Link* link = FindPending(connection);
  if (link == nullptr) return;
  link->failed =
      absl::UnavailableError(absl::StrCat("it refused the connection", why.has_value() ? ": " : "",
                                          why.has_value() ? AbslView(RefusalText(*why)) : ""));
  inbox_.WakeAll();
}

void UcxPort::OnIntrusion(UcxConnection& connection) {
  if (connection.accepted) return Refuse(connection, Refusal::kNoHello);
  Link* link = FindPending(connection);
  if (link == nullptr) return;
  link->failed = absl::UnavailableError("it sent something before its proof of the session's key");
  inbox_.WakeAll();
}

void UcxPort::OnLost(UcxConnection& connection, const absl::Status& why) {
  const auto link = links_.find(connection.peer);
  if (link == links_.end() || link->second.connection != &connection) {
    if (connection.accepted && !connection.refused) {
      refusals_.Add(connection.from, "it went away before it proved the session's key");
    }
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
