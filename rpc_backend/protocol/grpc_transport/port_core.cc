#include "rpc_backend/protocol/grpc_transport/port_core.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/equal_secrets.h"

namespace weft {
namespace {

bool SameToken(const PeerToken& token, const std::string& bytes) {
  return EqualSecrets({reinterpret_cast<const char*>(token.data()), token.size()}, bytes);
}

}  // namespace

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

void GrpcPortCore::Open(const PortPeer& peer, int64_t port, DataStream& stream) {
  proto::DataMessage hello;
  hello.set_token(peer.token.data(), peer.token.size());
  hello.set_from(options_.own_number);
  hello.set_to(peer.number);
  hello.set_session(static_cast<int64_t>(options_.session));
  hello.set_port(port);
  MutexLock lock(mutex_);
  ++streams_;
  Connection& connection =
      connections_.try_emplace(peer.number, DataLink(peer.number, inbox_, stream)).first->second;
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

absl::Status GrpcPortCore::Accept(const proto::DataMessage& hello, DataStream& stream) {
  MutexLock lock(mutex_);
  const PortPeer* expected = inbox_.FindPeer(hello.from());
  if (shut_down_ || expected == nullptr || !SameToken(expected->token, hello.token()) ||
      connections_.contains(hello.from()) || hello.to() != options_.own_number ||
      hello.session() != static_cast<int64_t>(options_.session)) {
    return absl::UnavailableError("such a connection is not expected");
  }
  ++streams_;
  Connection& connection =
      connections_.try_emplace(hello.from(), DataLink(hello.from(), inbox_, stream)).first->second;
  connection.welcomed = true;
  inbox_.ConnectPeer(hello.from(), "grpc");
  connection.link.PostControl({});
  return absl::OkStatus();
}

bool GrpcPortCore::Take(int32_t peer, DataStream& stream, proto::DataMessage& frame) {
  MutexLock lock(mutex_);
  Connection* connection = Find(peer, stream);
  if (connection == nullptr) return false;
  if (!connection->welcomed) {
    connection->welcomed = true;
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
