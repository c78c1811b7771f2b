#include "common/transport/inbox.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

absl::Status Inbox::AddPeer(const PortPeer& peer) {
  if (peer.number < 0 || peer.number == options_.own_number) {
    return absl::InvalidArgumentError(absl::StrCat("peer number ", peer.number, " (", peer.name,
                                                   ") is not one of another process"));
  }
  if (!aborted_.ok()) return aborted_;
  if (peers_.contains(peer.number)) {
    return absl::AlreadyExistsError(absl::StrCat(PeerText(peer.number), " is already a peer"));
  }
  Peer& added = peers_[peer.number];
  added.info = peer;
  added.traffic.peer = peer.number;
  added.traffic.name = peer.name;
  return absl::OkStatus();
}

void Inbox::RemovePeer(int32_t peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.connected) return;
  peers_.erase(found);
  WakeAll();
}

void Inbox::ConnectPeer(int32_t peer, std::string transport) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second.connected = true;
  found->second.traffic.transport = std::move(transport);
  WakeAll();
}

void Inbox::LosePeer(int32_t peer, const absl::Status& why) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.lost.ok()) return;
  found->second.lost =
      absl::UnavailableError(absl::StrCat(PeerText(peer), " is lost: ", why.message()));
  found->second.traffic.lost = true;
  if (failure_.ok()) failure_ = found->second.lost;
  for (std::deque<Entry>& entries : entries_) {
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].message.peer == peer && !entries[i].here) Remove(entries, i);
    }
  }
  WakeAll();
}

absl::Status Inbox::CheckPeer(int32_t peer) const {
  if (!aborted_.ok()) return aborted_;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(PeerText(peer), " is not a peer of this port"));
  }
  if (!found->second.lost.ok()) return found->second.lost;
  if (!found->second.connected) {
    return absl::InvalidArgumentError(absl::StrCat(PeerText(peer), " is not connected yet"));
  }
  return absl::OkStatus();
}

std::optional<absl::Status> Inbox::AllConnected() const {
  if (!aborted_.ok()) return aborted_;
  bool all = true;
  for (const auto& [number, peer] : peers_) {
    if (!peer.lost.ok()) return peer.lost;
    all = all && peer.connected;
  }
  if (!all) return std::nullopt;
  return absl::OkStatus();
}

absl::Status Inbox::PeersMissing() const {
  for (const auto& [number, peer] : peers_) {
    if (peer.connected) continue;
    return absl::DeadlineExceededError(
        absl::StrCat(PeerText(number), " has not connected before the deadline"));
  }
  return absl::OkStatus();
}

std::string Inbox::PeerText(int32_t peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.info.name.empty()) return absl::StrCat("peer ", peer);
  return absl::StrCat("peer ", peer, " (", found->second.info.name, ")");
}

const PortPeer* Inbox::FindPeer(int32_t peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : &found->second.info;
}

bool Inbox::Admit(int32_t peer, const MessageHeader& header, int64_t bytes, bool eager) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.lost.ok() || !aborted_.ok()) return false;
  Peer& from = found->second;
  if (header.epoch != options_.epoch) {
    ++from.traffic.messages_dropped;
    return false;
  }
  const PortLimits& limits = options_.limits;
  if (header.kind >= kMessageKinds || header.step < 0 || header.id < 0 || bytes < 0) {
    Abort(absl::InvalidArgumentError(
        absl::StrCat(PeerText(peer), " sent a message header that is out of range")));
    return false;
  }
  if (bytes > limits.max_message_bytes) {
    Abort(absl::InvalidArgumentError(absl::StrCat(PeerText(peer), " sent a message of ", bytes,
                                                  " bytes; the limit is ",
                                                  limits.max_message_bytes)));
    return false;
  }
  if (from.unread_messages >= limits.unread_messages_per_peer ||
      (eager && from.unread_eager_bytes + bytes > limits.unread_eager_bytes_per_peer)) {
    Abort(absl::ResourceExhaustedError(
        absl::StrCat(PeerText(peer), " is too far ahead: ", from.unread_messages, " messages and ",
                     from.unread_eager_bytes, " bytes of it were not read")));
    return false;
  }
  ++from.unread_messages;
  if (eager) from.unread_eager_bytes += bytes;
  return true;
}

void Inbox::Store(Message message) {
  const int64_t bytes = static_cast<int64_t>(message.payload.size());
  if (!Admit(message.peer, message.header, bytes, /*eager=*/true)) return;
  const int32_t peer = message.peer;
  const MessageHeader header = message.header;
  stored_bytes_ += bytes;
  entries_[header.kind].push_back(
      {.message = std::move(message), .bytes = bytes, .here = true, .eager = true});
  NotifyMatching(peer, header);
}

std::optional<int64_t> Inbox::Offer(int32_t peer, const MessageHeader& header, int64_t bytes) {
  if (!Admit(peer, header, bytes, /*eager=*/false)) return std::nullopt;
  const int64_t ticket = next_ticket_++;
  ++offers_;
  entries_[header.kind].push_back({.message = {.peer = peer, .header = header, .payload = {}},
                                   .bytes = bytes,
                                   .ticket = ticket});
  return ticket;
}

std::optional<Inbox::Wanted> Inbox::NextWanted() {
  if (offers_ == 0 || !aborted_.ok()) return std::nullopt;
  for (std::deque<Entry>& entries : entries_) {
    for (Entry& entry : entries) {
      if (entry.ticket < 0 || entry.wanted) continue;
      if (stored_bytes_ + entry.bytes > options_.limits.inbox_bytes && !IsAwaited(entry)) continue;
      entry.wanted = true;
      --offers_;
      stored_bytes_ += entry.bytes;
      return Wanted{.ticket = entry.ticket, .bytes = entry.bytes};
    }
  }
  return std::nullopt;
}

bool Inbox::IsAwaited(const Entry& offer) const {
  const auto matches = [](const Waiter* waiter, const Entry& entry) {
    return waiter->filter.Matches(entry.message.peer, entry.message.header);
  };
  const auto has_none = [&](const Waiter* waiter) {
    for (const std::deque<Entry>& entries : entries_) {
      for (const Entry& entry : entries) {
        if ((entry.here || entry.wanted) && matches(waiter, entry)) return false;
      }
    }
    return true;
  };
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter* waiter) {
    return matches(waiter, offer) && has_none(waiter);
  });
}

Inbox::Entry* Inbox::FindTicket(int64_t ticket) {
  for (std::deque<Entry>& entries : entries_) {
    for (Entry& entry : entries) {
      if (entry.ticket == ticket) return &entry;
    }
  }
  return nullptr;
}

void Inbox::Fetched(int64_t ticket, Payload payload) {
  Entry* entry = FindTicket(ticket);
  if (entry == nullptr || !entry->wanted || entry->here) return;
  entry->here = true;
  entry->message.payload = std::move(payload);
  NotifyMatching(entry->message.peer, entry->message.header);
}

void Inbox::FetchFailed(int64_t ticket, const absl::Status& why) {
  const Entry* entry = FindTicket(ticket);
  if (entry != nullptr) LosePeer(entry->message.peer, why);
}

void Inbox::Remove(std::deque<Entry>& entries, size_t index) {
  const Entry& entry = entries[index];
  const auto from = peers_.find(entry.message.peer);
  if (from != peers_.end()) {
    --from->second.unread_messages;
    if (entry.eager) from->second.unread_eager_bytes -= entry.bytes;
  }
  if (entry.here || entry.wanted) {
    stored_bytes_ -= entry.bytes;
  } else {
    --offers_;
  }
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(index));
}

void Inbox::NotifyMatching(int32_t peer, const MessageHeader& header) {
  for (Waiter* waiter : waiters_) {
    if (waiter->filter.Matches(peer, header)) waiter->changed.NotifyOne();
  }
}

absl::Status Inbox::Unreachable(const MessageFilter& filter) const {
  for (const auto& [number, peer] : peers_) {
    if (filter.ends_with_any_peer && !peer.lost.ok()) return peer.lost;
  }
  if (filter.peer >= 0) {
    const auto found = peers_.find(filter.peer);
    if (found != peers_.end()) return found->second.lost;
    return absl::InvalidArgumentError(
        absl::StrCat(PeerText(filter.peer), " is not a peer of this port"));
  }
  absl::Status first;
  for (const auto& [number, peer] : peers_) {
    if (peer.lost.ok()) return absl::OkStatus();
    if (first.ok()) first = peer.lost;
  }
  return first;
}

std::optional<absl::StatusOr<Message>> Inbox::Poll(const Waiter& waiter) {
  if (!aborted_.ok()) return aborted_;
  std::deque<Entry>* best_entries = nullptr;
  size_t best = 0;
  const auto order = [](const Entry& entry) {
    return std::tie(entry.message.header.step, entry.message.header.id, entry.message.peer);
  };
  for (std::deque<Entry>& entries : entries_) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (!entry.here || !waiter.filter.Matches(entry.message.peer, entry.message.header)) continue;
      if (best_entries != nullptr && order(entry) >= order((*best_entries)[best])) continue;
      best_entries = &entries;
      best = i;
    }
  }
  if (best_entries != nullptr) {
    Message message = std::move((*best_entries)[best].message);
    const auto from = peers_.find(message.peer);
    if (from != peers_.end()) {
      KindTraffic& traffic = from->second.traffic.kinds[message.header.kind];
      ++traffic.messages_received;
      traffic.bytes_received += static_cast<int64_t>(message.payload.size());
    }
    (*best_entries)[best].message.peer = message.peer;
    Remove(*best_entries, best);
    return message;
  }
  if (waiter.stop != nullptr && waiter.stop->load()) {
    return absl::CancelledError("the wait for a message was stopped");
  }
  if (absl::Status lost = Unreachable(waiter.filter); !lost.ok()) return lost;
  return std::nullopt;
}

absl::Status Inbox::TimedOut(const MessageFilter& filter) const {
  return absl::DeadlineExceededError(
      absl::StrCat("no message before the deadline (", MessageFilterText(filter),
                   filter.peer < 0 ? "" : absl::StrCat("; ", PeerText(filter.peer)), ")"));
}

absl::Status Inbox::SendTimedOut(int32_t peer, const MessageHeader& header) const {
  return absl::DeadlineExceededError(absl::StrCat(
      PeerText(peer), " took too little of what was sent before to send ",
      MessageHeaderText(header), " within ", options_.limits.send_timeout.count(), " ms"));
}

void Inbox::WakeAll() {
  for (Waiter* waiter : waiters_) waiter->changed.NotifyOne();
}

void Inbox::WakeAnother(const Waiter* except, bool patient_too) {
  for (const bool patient : {false, true}) {
    if (patient && !patient_too) return;
    for (Waiter* waiter : waiters_) {
      if (waiter == except || waiter->filter.patient != patient) continue;
      waiter->changed.NotifyOne();
      return;
    }
  }
}

void Inbox::Abort(absl::Status reason) {
  if (!aborted_.ok() || reason.ok()) return;
  aborted_ = std::move(reason);
  if (failure_.ok()) failure_ = aborted_;
  WakeAll();
}

void Inbox::CountSent(int32_t peer, uint32_t kind, int64_t bytes) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  ++found->second.traffic.kinds[kind].messages_sent;
  found->second.traffic.kinds[kind].bytes_sent += bytes;
}

std::vector<PeerTraffic> Inbox::traffic() const {
  std::vector<PeerTraffic> result;
  result.reserve(peers_.size());
  for (const auto& [number, peer] : peers_) result.push_back(peer.traffic);
  return result;
}

absl::Status Inbox::TooLarge(int64_t bytes) const {
  return absl::InvalidArgumentError(absl::StrCat("a message of ", bytes, " bytes; the limit is ",
                                                 options_.limits.max_message_bytes));
}

absl::Status Inbox::CheckOutgoing(int32_t peer, const MessageHeader& header, int64_t bytes) const {
  if (absl::Status status = CheckPeer(peer); !status.ok()) return status;
  if (header.kind >= kMessageKinds || header.step < 0 || header.id < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("message header out of range: ", MessageHeaderText(header)));
  }
  if (header.epoch != options_.epoch) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of epoch ", header.epoch, " at a port of epoch ", options_.epoch));
  }
  if (bytes > options_.limits.max_message_bytes) return TooLarge(bytes);
  return absl::OkStatus();
}

}  // namespace weft
