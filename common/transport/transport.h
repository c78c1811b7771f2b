// A way of moving messages between processes: makes the ports of sessions. One per process and
// kind.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/transport/message_port.h"
#include "common/transport/peer_proof.h"

namespace weft {

// What one port may hold. All are checked before memory is taken.
struct PortLimits {
  int64_t max_message_bytes = int64_t{1} << 30;
  // Large messages (more than kEagerBytes) stay with their sender while the port holds this many
  // bytes that nobody has read, unless somebody waits for them.
  int64_t inbox_bytes = int64_t{64} << 20;
  // A peer whose small messages pile up unread beyond these bounds fails the port.
  int64_t unread_messages_per_peer = 16384;
  int64_t unread_eager_bytes_per_peer = int64_t{64} << 20;
  // Bytes on their way to one peer before Send waits, at most for `send_timeout`. One message may
  // exceed it.
  int64_t outgoing_bytes_per_peer = int64_t{64} << 20;
  // Memory of past messages that is kept for later ones.
  int64_t pooled_bytes = int64_t{32} << 20;
  std::chrono::milliseconds send_timeout{5000};
};

// Messages up to this size travel at once; larger ones when the receiver has room for them.
inline constexpr int64_t kEagerBytes = 16384;

struct PortOptions {
  uint64_t session = 0;
  uint32_t epoch = 0;
  int32_t own_number = 0;  // >= 0
  SessionKey key = {};     // equal in all ports of the session
  PortLimits limits;
  Logger* logger =
      nullptr;  // hears of connections that are refused; outlives the port; may be null
};

// Any thread may call. Ports may outlive their transport.
class Transport {
 public:
  virtual ~Transport() = default;
  // "ucx", "loopback", "grpc".
  virtual const std::string& name() const = 0;

  // Errors: INVALID_ARGUMENT for options out of range; UNAVAILABLE where the port cannot listen;
  // RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) = 0;
};

// INVALID_ARGUMENT naming the option that is out of range.
absl::Status CheckPortOptions(const PortOptions& options);

}  // namespace weft
