#include "common/transport/loopback/loopback_core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {

using Port = LoopbackNetwork::Core::Port;

Port& LoopbackNetwork::Core::Add(const PortOptions& options) {
  std::string address = absl::StrCat("loopback:", next_port_++);
  std::unique_ptr<Port>& port = ports_[address];
  port = std::make_unique<Port>(address, options);
  return *port;
}

void LoopbackNetwork::Core::Remove(Port& port) {
  while (!port.links.empty()) {
    const int32_t peer = port.links.begin()->first;
    Lose(port, peer, absl::UnavailableError("the connection was closed"));
    port.links.erase(peer);
  }
  ports_.erase(ports_.find(port.address));
}

Port* LoopbackNetwork::Core::Find(std::string_view address) {
  const auto found = ports_.find(address);
  return found == ports_.end() ? nullptr : found->second.get();
}

absl::Status LoopbackNetwork::Core::Connect(Port& port, const PortPeer& peer,
                                            std::string_view address) {
  Port* other = Find(address);
  if (other == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(port.inbox.PeerText(peer.number), ": nobody listens at ", AbslView(address)));
  }
  const int32_t self = port.options.own_number;
  const PortPeer* expected = other->inbox.FindPeer(self);
  // Both are in this process: nobody has to prove what can be compared.
  if (expected == nullptr || expected->token != peer.token || other->links.contains(self) ||
      other->options.own_number != peer.number || other->options.session != port.options.session ||
      !other->options.key.Equals(port.options.key)) {
    return absl::UnavailableError(
        absl::StrCat(port.inbox.PeerText(peer.number), " refused the connection"));
  }
  port.links[peer.number] = {.other = other, .number_there = self};
  other->links[self] = {.other = &port, .number_there = peer.number};
  port.inbox.ConnectPeer(peer.number, "loopback");
  other->inbox.ConnectPeer(self, "loopback");
  return absl::OkStatus();
}

void LoopbackNetwork::Core::Post(Port& port, int32_t peer, const MessageHeader& header,
                                 Payload payload) {
  const LoopbackFate fate =
      rule_ ? rule_(port.options.own_number, peer, header) : LoopbackFate::kDeliver;
  if (fate == LoopbackFate::kDrop) return;
  if (fate == LoopbackFate::kHold) {
    port.links[peer].outgoing_bytes += static_cast<int64_t>(payload.size());
    held_.push_back(
        {.address = port.address, .peer = peer, .header = header, .payload = std::move(payload)});
    return;
  }
  Deliver(port, peer, header, std::move(payload));
}

void LoopbackNetwork::Core::Deliver(Port& port, int32_t peer, const MessageHeader& header,
                                    Payload payload) {
  Port::Link& link = port.links[peer];
  if (link.other == nullptr) return;
  Port& receiver = *link.other;
  const int32_t from = link.number_there;
  const int64_t bytes = static_cast<int64_t>(payload.size());
  if (bytes <= kEagerBytes) {
    receiver.inbox.Store({.peer = from, .header = header, .payload = std::move(payload)});
    return;
  }
  const std::optional<int64_t> ticket = receiver.inbox.Offer(from, header, bytes);
  if (!ticket.has_value()) return;
  link.outgoing_bytes += bytes;
  receiver.parcels[*ticket] = {.from = from, .payload = std::move(payload)};
  Fetch(receiver);
}

void LoopbackNetwork::Core::Returned(Port& receiver, int32_t from, int64_t bytes) {
  const auto link = receiver.links.find(from);
  if (link == receiver.links.end() || link->second.other == nullptr) return;
  Port& sender = *link->second.other;
  sender.links[link->second.number_there].outgoing_bytes -= bytes;
  sender.sent.NotifyAll();
}

void LoopbackNetwork::Core::Fetch(Port& port) {
  while (const std::optional<Inbox::Wanted> wanted = port.inbox.NextWanted()) {
    const auto parcel = port.parcels.find(wanted->ticket);
    Returned(port, parcel->second.from, wanted->bytes);
    port.inbox.Fetched(wanted->ticket, std::move(parcel->second.payload));
    port.parcels.erase(parcel);
  }
}

void LoopbackNetwork::Core::Lose(Port& port, int32_t peer, const absl::Status& why) {
  const auto link = port.links.find(peer);
  if (link == port.links.end() || link->second.other == nullptr) return;
  Port& other = *link->second.other;
  const int32_t self = link->second.number_there;
  for (const auto& [here, number] : {std::pair(&port, peer), std::pair(&other, self)}) {
    here->links[number].other = nullptr;
    here->inbox.LosePeer(number, why);
    std::erase_if(here->parcels,
                  [number](const auto& parcel) { return parcel.second.from == number; });
    here->sent.NotifyAll();
  }
}

void LoopbackNetwork::Core::SetRule(LoopbackRule rule) {
  MutexLock lock(mutex_);
  rule_ = std::move(rule);
}

void LoopbackNetwork::Core::ReleaseHeld() {
  MutexLock lock(mutex_);
  while (!held_.empty()) {
    Held held = std::move(held_.front());
    held_.pop_front();
    Port* sender = Find(held.address);
    if (sender == nullptr) continue;
    sender->links[held.peer].outgoing_bytes -= static_cast<int64_t>(held.payload.size());
    Deliver(*sender, held.peer, held.header, std::move(held.payload));
    sender->sent.NotifyAll();
  }
}

int64_t LoopbackNetwork::Core::held_messages() {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(held_.size());
}

void LoopbackNetwork::Core::Disconnect(std::string_view address, std::string_view other) {
  MutexLock lock(mutex_);
  Port* port = Find(address);
  if (port == nullptr) return;
  for (const auto& [peer, link] : port->links) {
    if (link.other == nullptr || link.other->address != other) continue;
    Lose(*port, peer, absl::UnavailableError("the connection broke"));
    return;
  }
}

}  // namespace weft
