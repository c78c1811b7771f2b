#include "rpc_backend/protocol/grpc_transport/port_core.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// False unless there are exactly as many.
template <size_t N>
bool Copy(const std::string& bytes, std::array<uint8_t, N>& to) {
  if (bytes.size() != N) return false;
  std::copy(bytes.begin(), bytes.end(), to.begin());
  return true;
}

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

void GrpcPortCore::SetAddress(const std::string& address) {
  MutexLock lock(mutex_);
  address_ = DigestOfAddress(address);
}

DataLink* GrpcPortCore::FindLink(int32_t peer) {
  const auto found = connections_.find(peer);
  return found == connections_.end() ? nullptr : &found->second.link;
}

GrpcPortCore::Connection* GrpcPortCore::Find(int32_t peer, const DataStream& stream) {
  const auto found = connections_.find(peer);
  if (found == connections_.end() || found->second.over ||
      &found->second.link.stream() != &stream) {
    return nullptr;
  }
  return &found->second;
}

void GrpcPortCore::FetchWanted() {
  while (const std::optional<Inbox::Wanted> wanted = inbox_.NextWanted()) {
    for (auto& [peer, connection] : connections_) {
      if (connection.link.Holds(wanted->ticket)) {
        connection.link.Fetch(wanted->ticket, wanted->bytes);
        break;
      }
    }
  }
}

void GrpcPortCore::Shutdown() {
  MutexLock lock(mutex_);
  shut_down_ = true;
  for (auto& [peer, connection] : connections_) {
    if (!connection.over) connection.link.stream().Cancel();
  }
  while (streams_ > 0) changed_.Wait(mutex_);
  channels_.clear();
}

void GrpcPortCore::Open(const PortPeer& peer, int64_t port, std::string_view address,
                        const PeerNonce& nonce, DataStream& stream) {
  proto::DataMessage hello;
  hello.set_from(options_.own_number);
  hello.set_to(peer.number);
  hello.set_session(static_cast<int64_t>(options_.session));
  hello.set_port(port);
  hello.set_nonce(std::string(ViewOf(nonce)));
  MutexLock lock(mutex_);
  hello.set_port_address(std::string(ViewOf(address_)));
  ++streams_;
  Connection& connection =
      connections_.try_emplace(peer.number, DataLink(peer.number, inbox_, stream)).first->second;
  connection.handshake = {.session = options_.session,
                          .connector = options_.own_number,
                          .listener = peer.number,
                          .token = peer.token,
                          .connector_nonce = nonce,
                          .listener_nonce = {},
                          .connector_address = address_,
                          .listener_address = DigestOfAddress(address)};
  connection.link.PostControl(std::move(hello));
}

absl::Status GrpcPortCore::AwaitWelcome(int32_t peer, Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  Connection& connection = connections_.at(peer);
  bool in_time = true;
  while (!connection.welcomed && !connection.over && inbox_.aborted().ok() && in_time) {
    in_time = changed_.WaitUntil(mutex_, deadline);
  }
  if (connection.welcomed) return absl::OkStatus();
  absl::Status status =
      !inbox_.aborted().ok() ? inbox_.aborted()
      : connection.over      ? absl::UnavailableError(absl::StrCat(
                              inbox_.PeerText(peer), " refused the connection: ", connection.why))
                             : absl::DeadlineExceededError(
                              absl::StrCat(inbox_.PeerText(peer), " did not answer in time"));
  if (!connection.over) connection.link.stream().Cancel();
  connections_.erase(peer);
  inbox_.RemovePeer(peer);
  return status;
}

absl::StatusOr<const PortPeer*> GrpcPortCore::Expected(int32_t peer) {
  const PortPeer* expected = inbox_.FindPeer(peer);
  if (shut_down_ || expected == nullptr || connections_.contains(peer)) {
    return absl::UnavailableError("no such connection is expected");
  }
  return expected;
}

absl::StatusOr<proto::DataMessage> GrpcPortCore::Challenge(const proto::DataMessage& hello,
                                                           PeerHandshake& handshake) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const PortPeer* peer, Expected(hello.from()));
  handshake.session = options_.session;
  handshake.connector = hello.from();
  handshake.listener = options_.own_number;
  handshake.token = peer->token;
  handshake.listener_address = address_;
  if (hello.to() != options_.own_number ||
      hello.session() != static_cast<int64_t>(options_.session) ||
      !Copy(hello.nonce(), handshake.connector_nonce) ||
      !Copy(hello.port_address(), handshake.connector_address)) {
    return absl::UnavailableError("no such connection is expected");
  }
  ASSIGN_OR_RETURN(handshake.listener_nonce, NewPeerNonce());
  ASSIGN_OR_RETURN(const PeerMac proof, ProveSide(options_.key, PeerSide::kListener, handshake));
  proto::DataMessage challenge;
  challenge.set_nonce(std::string(ViewOf(handshake.listener_nonce)));
  challenge.set_proof(std::string(ViewOf(proof)));
  return challenge;
}

absl::Status GrpcPortCore::Accept(const PeerHandshake& handshake, const proto::DataMessage& proof,
                                  DataStream& stream) {
  if (!IsProofOf(options_.key, PeerSide::kConnector, handshake, Bytes(proof.proof()))) {
    return absl::UnavailableError("the proof of the session's key is wrong");
  }
  const int32_t peer = handshake.connector;
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Expected(peer).status());
  ++streams_;
  Connection& connection =
      connections_.try_emplace(peer, DataLink(peer, inbox_, stream)).first->second;
  connection.welcomed = true;
  inbox_.ConnectPeer(peer, "grpc");
  connection.link.PostControl({});
  return absl::OkStatus();
}

absl::Status GrpcPortCore::AnswerChallenge(const proto::DataMessage& challenge,
                                           Connection& connection) {
  PeerHandshake& handshake = connection.handshake;
  if (!Copy(challenge.nonce(), handshake.listener_nonce) ||
      !IsProofOf(options_.key, PeerSide::kListener, handshake, Bytes(challenge.proof()))) {
    return absl::UnavailableError("its proof of the session's key is wrong");
  }
  ASSIGN_OR_RETURN(const PeerMac mac, ProveSide(options_.key, PeerSide::kConnector, handshake));
  proto::DataMessage proof;
  proof.set_proof(std::string(ViewOf(mac)));
  connection.answered = true;
  connection.link.PostControl(std::move(proof));
  return absl::OkStatus();
}

bool GrpcPortCore::Take(int32_t peer, DataStream& stream, proto::DataMessage& frame) {
  MutexLock lock(mutex_);
  Connection* connection = Find(peer, stream);
  if (connection == nullptr) return false;
  if (!connection->answered && !connection->welcomed) {
    const absl::Status answered = AnswerChallenge(frame, *connection);
    if (answered.ok()) return true;
    connection->link.Close();
    connection->over = true;
    connection->why = std::string(answered.message());
    changed_.NotifyAll();
    stream.Cancel();
    return false;
  }
  if (!connection->welcomed) {
    connection->welcomed = true;
    connection->handshake = {};
    inbox_.ConnectPeer(peer, "grpc");
    changed_.NotifyAll();
    return true;
  }
  const absl::Status status = connection->link.Take(frame);
  if (!status.ok()) {
    inbox_.LosePeer(peer, status);
    connection->link.Close();
    stream.Cancel();
  } else {
    FetchWanted();
  }
  sent_.NotifyAll();
  return status.ok();
}

void GrpcPortCore::Written(int32_t peer, DataStream& stream) {
  MutexLock lock(mutex_);
  if (Connection* connection = Find(peer, stream); connection != nullptr) {
    connection->link.Written();
    sent_.NotifyAll();
  }
}

void GrpcPortCore::StopWriting(int32_t peer, DataStream& stream) {
  MutexLock lock(mutex_);
  if (Connection* connection = Find(peer, stream); connection != nullptr) connection->link.Close();
}

void GrpcPortCore::Close(int32_t peer, DataStream& stream, std::string_view why) {
  MutexLock lock(mutex_);
  Connection* connection = Find(peer, stream);
  if (connection == nullptr) return;
  connection->link.Close();
  connection->over = true;
  connection->why = std::string(why);
  if (connection->welcomed) inbox_.LosePeer(peer, absl::UnavailableError(AbslView(why)));
  changed_.NotifyAll();
  sent_.NotifyAll();
}

void GrpcPortCore::Gone(std::shared_ptr<void> channel) {
  MutexLock lock(mutex_);
  if (channel != nullptr) channels_.push_back(std::move(channel));
  --streams_;
  changed_.NotifyAll();
}

void GrpcPortRegistry::AddStranger(DataStream& stream, std::string from) {
  MutexLock lock(mutex_);
  std::vector<size_t> live;
  std::vector<std::string> hosts;
  for (size_t i = 0; i < strangers_.size(); ++i) {
    if (strangers_[i].ended) continue;
    live.push_back(i);
    hosts.emplace_back(HostOf(strangers_[i].from));
  }
  if (static_cast<int64_t>(live.size()) >= kMaxStrangers) {
    Stranger& leaves = strangers_[live[StrangerToDrop(hosts)]];
    leaves.ended = true;
    leaves.stream->Cancel();
    refusals_.Add(leaves.from, "too many connections that have not proved the session's key");
  }
  strangers_.push_back({.stream = &stream, .from = std::move(from)});
}

void GrpcPortRegistry::RemoveStranger(const DataStream& stream) {
  MutexLock lock(mutex_);
  std::erase_if(strangers_, [&](const Stranger& other) { return other.stream == &stream; });
}

void GrpcPortRegistry::LogRefusal(std::string_view from, std::string_view why) {
  MutexLock lock(mutex_);
  refusals_.Add(from, why);
}

int64_t GrpcPortRegistry::Add(const std::shared_ptr<GrpcPortCore>& port) {
  MutexLock lock(mutex_);
  const int64_t number = next_++;
  ports_[number] = port;
  return number;
}

void GrpcPortRegistry::Remove(int64_t number) {
  MutexLock lock(mutex_);
  ports_.erase(number);
}

std::shared_ptr<GrpcPortCore> GrpcPortRegistry::Find(int64_t number) {
  MutexLock lock(mutex_);
  const auto found = ports_.find(number);
  return found == ports_.end() ? nullptr : found->second;
}

}  // namespace weft
