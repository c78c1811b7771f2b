// One process's side of a session's data plane. Peers have numbers that the session gives; each
// pair has at most one connection, over whatever the implementation finds best.
//
// A port does not read ahead of its owner without bound, needs no thread of its own, and knows
// nothing of what the messages mean. It lives for one epoch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/transport/message.h"
#include "common/transport/peer_proof.h"

namespace weft {

// Another process of the session.
struct PortPeer {
  int32_t number = -1;  // >= 0, unlike the port's own
  std::string name;     // for errors: "w1 (10.0.0.2:7000)"
  PeerToken token = {};
};

struct KindTraffic {
  int64_t messages_sent = 0;
  int64_t bytes_sent = 0;  // of payloads
  int64_t messages_received = 0;
  int64_t bytes_received = 0;
};

struct PeerTraffic {
  int32_t peer = -1;
  std::string name;
  std::string transport;  // "posix+cma", "tcp", "loopback", "grpc"; empty before the connection
  bool lost = false;
  int64_t messages_dropped = 0;  // arrived with another epoch
  std::array<KindTraffic, kMessageKinds> kinds;

  KindTraffic Total() const;
};

// Any thread may call, except the destructor: nobody is inside a call then, or calls later.
class MessagePort {
 public:
  virtual ~MessagePort() = default;

  // What other processes of the session hand to their Connect: one line of printable text, at most
  // kMaxPortAddressBytes, opaque to all but the same transport.
  virtual const std::string& address() const = 0;

  // Lets `peer` connect to this port; returns at once.
  // Errors: INVALID_ARGUMENT for a bad number; ALREADY_EXISTS where the number is taken.
  virtual absl::Status Expect(const PortPeer& peer) = 0;

  // Connects to the port of `peer`, which expects this one; returns once both sides have proved
  // that they know the session's key (peer_proof.h). That takes a thread in Receive, AwaitPeers or
  // Progress there.
  // Errors: as Expect; UNAVAILABLE where nobody listens or the connection was refused;
  // DEADLINE_EXCEEDED. After an error the number is free again.
  virtual absl::Status Connect(const PortPeer& peer, std::string_view address,
                               Clock::TimePoint deadline) = 0;

  // Waits until every expected peer has connected.
  // Errors: DEADLINE_EXCEEDED naming one that is missing; UNAVAILABLE for one that is lost.
  virtual absl::Status AwaitPeers(Clock::TimePoint deadline) = 0;

  // No peer will connect to this port any more: strangers cannot either, where that is possible.
  // Connections that exist go on. Called again, nothing happens.
  virtual void StopListening() {}

  // Sends the parts as one payload. The bytes are copied or gone when it returns, and it never
  // waits for the receiver to read: only, up to the port's send timeout, while more bytes than the
  // limit are on their way to that peer. Errors: INVALID_ARGUMENT for a header out of range, a
  // foreign epoch, an unknown or unconnected peer, or more bytes than a message may have;
  // UNAVAILABLE if the peer is lost; DEADLINE_EXCEEDED.
  virtual absl::Status Send(int32_t peer, const MessageHeader& header,
                            absl::Span<const absl::Span<const uint8_t>> parts) = 0;

  // Waits for a message that `filter` matches; of several the one with the lowest (step, id, peer),
  // then the first to arrive. A message goes to one reader.
  // Errors: UNAVAILABLE naming the lost peer if it can only come from a peer that is lost, or the
  // filter needs all of them (what had arrived can still be read), CANCELLED once *stop is set and
  // Wake was called, DEADLINE_EXCEEDED, INVALID_ARGUMENT for a peer that is not of this port, the
  // status of Abort.
  virtual absl::StatusOr<Message> Receive(const MessageFilter& filter, Clock::TimePoint deadline,
                                          const std::atomic<bool>* stop = nullptr) = 0;

  // Takes back the memory of a payload that was received, for later messages. Worth while for large
  // ones; never needed.
  virtual void Recycle(Payload&& /*payload*/) {}

  // Lets the messages move on without waiting: to be called between chunks of work. Cheap when
  // another thread is inside the port.
  virtual void Progress() = 0;

  // Makes every waiting call look at its `stop` again.
  virtual void Wake() = 0;

  // Everything that waits, and every later call, ends with `reason` (not OK). The first one counts.
  virtual void Abort(absl::Status reason) = 0;

  // The first loss of a peer, or the reason of an abort; OK while healthy.
  virtual absl::Status failure() = 0;

  // By peer number.
  virtual std::vector<PeerTraffic> traffic() = 0;
};

inline constexpr int64_t kMaxPortAddressBytes = 1024;

// "peer 1 (w1 (10.0.0.2:7000))": that peer in errors.
std::string PeerText(MessagePort& port, int32_t peer);

// Sends one span of bytes.
absl::Status SendBytes(MessagePort& port, int32_t peer, const MessageHeader& header,
                       absl::Span<const uint8_t> payload);

}  // namespace weft
