#include "rpc_backend/protocol/grpc_transport/data_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Of one frame; small messages wait behind at most one.
constexpr size_t kPieceBytes = size_t{256} << 10;

void SetHeader(const MessageHeader& header, proto::DataMessage& frame) {
  frame.set_epoch(header.epoch);
  frame.set_kind(header.kind);
  frame.set_step(header.step);
  frame.set_id(header.id);
}

MessageHeader HeaderOf(const proto::DataMessage& frame) {
  return {.epoch = frame.epoch(), .kind = frame.kind(), .step = frame.step(), .id = frame.id()};
}

}  // namespace

void DataLink::PostControl(proto::DataMessage frame) {
  if (closed_) return;
  urgent_.push_back(std::move(frame));
  WriteNext();
}

void DataLink::Post(const MessageHeader& header, std::string payload) {
  if (closed_) return;
  const auto bytes = static_cast<int64_t>(payload.size());
  outgoing_bytes_ += bytes;
  proto::DataMessage frame;
  SetHeader(header, frame);
  if (bytes <= kEagerBytes) {
    frame.set_payload(std::move(payload));
  } else {
    const int64_t ticket = next_ticket_++;
    frame.set_action(proto::DATA_ANNOUNCE);
    frame.set_ticket(ticket);
    frame.set_bytes(bytes);
    parcels_[ticket].payload = std::move(payload);
  }
  PostControl(std::move(frame));
}

void DataLink::Fetch(int64_t inbox_ticket, int64_t bytes) {
  const auto found = incoming_by_inbox_.find(inbox_ticket);
  if (closed_ || found == incoming_by_inbox_.end()) return;
  Incoming& incoming = incoming_.at(found->second);
  incoming.fetched = true;
  incoming.payload.resize(static_cast<size_t>(bytes));
  proto::DataMessage frame;
  frame.set_action(proto::DATA_FETCH);
  frame.set_ticket(found->second);
  PostControl(std::move(frame));
}

absl::Status DataLink::Take(proto::DataMessage& frame) {
  switch (frame.action()) {
    case proto::DATA_MESSAGE:
      return TakeMessage(frame);
    case proto::DATA_ANNOUNCE:
      return TakeAnnouncement(frame);
    case proto::DATA_FETCH: {
      const auto parcel = parcels_.find(frame.ticket());
      const bool asked =
          std::find(sending_.begin(), sending_.end(), frame.ticket()) != sending_.end();
      if (parcel == parcels_.end() || asked) {
        return absl::InvalidArgumentError("asked for a message that was not announced");
      }
      sending_.push_back(frame.ticket());
      WriteNext();
      return absl::OkStatus();
    }
    case proto::DATA_DROP: {
      const auto parcel = parcels_.find(frame.ticket());
      if (parcel == parcels_.end() || parcel->second.written > 0) {
        return absl::InvalidArgumentError("dropped a message that was not announced");
      }
      outgoing_bytes_ -= static_cast<int64_t>(parcel->second.payload.size());
      std::erase(sending_, frame.ticket());
      parcels_.erase(parcel);
      return absl::OkStatus();
    }
    case proto::DATA_PIECE:
      return TakePiece(frame);
    default:
      return absl::InvalidArgumentError("sent a frame of an unknown kind");
  }
}

absl::Status DataLink::TakeMessage(proto::DataMessage& frame) {
  const std::string& bytes = frame.payload();
  if (static_cast<int64_t>(bytes.size()) > kEagerBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sent ", bytes.size(), " bytes without announcing them"));
  }
  Payload payload(bytes.size());
  if (!bytes.empty()) std::memcpy(payload.data(), bytes.data(), bytes.size());
  inbox_.Store({.peer = peer_, .header = HeaderOf(frame), .payload = std::move(payload)});
  return absl::OkStatus();
}

absl::Status DataLink::TakeAnnouncement(const proto::DataMessage& frame) {
  if (frame.ticket() < 1 || frame.bytes() <= kEagerBytes || incoming_.contains(frame.ticket())) {
    return absl::InvalidArgumentError(
        absl::StrCat("announced ", frame.bytes(), " bytes with ticket ", frame.ticket()));
  }
  const std::optional<int64_t> accepted = inbox_.Offer(peer_, HeaderOf(frame), frame.bytes());
  if (!accepted.has_value()) {
    proto::DataMessage answer;
    answer.set_action(proto::DATA_DROP);
    answer.set_ticket(frame.ticket());
    PostControl(std::move(answer));
    return absl::OkStatus();
  }
  incoming_[frame.ticket()] = {.inbox_ticket = *accepted, .bytes = frame.bytes(), .payload = {}};
  incoming_by_inbox_[*accepted] = frame.ticket();
  return absl::OkStatus();
}

absl::Status DataLink::TakePiece(const proto::DataMessage& frame) {
  const auto found = incoming_.find(frame.ticket());
  const std::string& bytes = frame.payload();
  if (found == incoming_.end() || !found->second.fetched || bytes.empty() ||
      static_cast<int64_t>(bytes.size()) > found->second.bytes - found->second.received) {
    return absl::InvalidArgumentError("sent bytes that nobody asked for");
  }
  Incoming& incoming = found->second;
  std::memcpy(incoming.payload.data() + incoming.received, bytes.data(), bytes.size());
  incoming.received += static_cast<int64_t>(bytes.size());
  if (incoming.received < incoming.bytes) return absl::OkStatus();
  inbox_.Fetched(incoming.inbox_ticket, std::move(incoming.payload));
  incoming_by_inbox_.erase(incoming.inbox_ticket);
  incoming_.erase(found);
  return absl::OkStatus();
}

void DataLink::WriteNext() {
  if (closed_ || writing_) return;
  if (!urgent_.empty()) {
    frame_ = std::move(urgent_.front());
    urgent_.pop_front();
  } else if (!sending_.empty()) {
    const int64_t ticket = sending_.front();
    Parcel& parcel = parcels_.at(ticket);
    const size_t bytes = std::min(kPieceBytes, parcel.payload.size() - parcel.written);
    frame_.Clear();
    frame_.set_action(proto::DATA_PIECE);
    frame_.set_ticket(ticket);
    frame_.set_payload(parcel.payload.data() + parcel.written, bytes);
    parcel.written += bytes;
    if (parcel.written == parcel.payload.size()) {
      sending_.pop_front();
      parcels_.erase(ticket);
    }
  } else {
    return;
  }
  writing_ = true;
  frame_bytes_ = static_cast<int64_t>(frame_.payload().size());
  stream_.StartFrame(frame_);
}

void DataLink::Written() {
  writing_ = false;
  outgoing_bytes_ -= frame_bytes_;
  frame_bytes_ = 0;
  WriteNext();
}

void DataLink::Close() {
  closed_ = true;
  outgoing_bytes_ = 0;
  urgent_.clear();
  sending_.clear();
  parcels_.clear();
  incoming_.clear();
  incoming_by_inbox_.clear();
}

}  // namespace weft
