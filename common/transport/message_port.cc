#include "common/transport/message_port.h"

#include "absl/strings/str_cat.h"
#include "common/transport/transport.h"

namespace weft {

KindTraffic PeerTraffic::Total() const {
  KindTraffic total;
  for (const KindTraffic& kind : kinds) {
    total.messages_sent += kind.messages_sent;
    total.bytes_sent += kind.bytes_sent;
    total.messages_received += kind.messages_received;
    total.bytes_received += kind.bytes_received;
  }
  return total;
}

std::string PeerText(MessagePort& port, int32_t peer) {
  for (const PeerTraffic& traffic : port.traffic()) {
    if (traffic.peer == peer) return absl::StrCat("peer ", peer, " (", traffic.name, ")");
  }
  return absl::StrCat("peer ", peer);
}

absl::Status SendBytes(MessagePort& port, int32_t peer, const MessageHeader& header,
                       absl::Span<const uint8_t> payload) {
  return port.Send(peer, header, absl::MakeConstSpan(&payload, 1));
}

absl::Status CheckPortOptions(const PortOptions& options) {
  const PortLimits& limits = options.limits;
  if (options.own_number < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a port's own number is at least 0, not ", options.own_number));
  }
  if (limits.max_message_bytes < 1 || limits.inbox_bytes < 1 ||
      limits.unread_messages_per_peer < 1 || limits.unread_eager_bytes_per_peer < kEagerBytes ||
      limits.outgoing_bytes_per_peer < 1 || limits.pooled_bytes < 0 ||
      limits.send_timeout.count() < 0) {
    return absl::InvalidArgumentError("a limit of a message port is zero, negative or too small");
  }
  return absl::OkStatus();
}

}  // namespace weft
