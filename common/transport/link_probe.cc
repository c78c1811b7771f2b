#include "common/transport/link_probe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// The first byte of every message says what it is. Ids count upwards, so readers see them in order.
enum Word : uint8_t {
  kEcho = 1,    // send it back
  kBulk = 2,    // keep it
  kAcknowledge  // followed by a count: send it back once that many kBulk have come
  = 3,
  kEnd = 4,
};

absl::Status Unexpected(MessagePort& port, int32_t peer) {
  return absl::InvalidArgumentError(
      absl::StrCat(PeerText(port, peer), " sent something else during a link probe"));
}

class Prober {
 public:
  Prober(MessagePort& port, int32_t peer, const MessageHeader& key, Clock::TimePoint deadline)
      : port_(port), peer_(peer), header_(key), deadline_(deadline) {
    header_.id = 0;
  }

  absl::Status Send(const Payload& payload) {
    ++header_.id;
    return SendBytes(port_, peer_, header_, payload);
  }

  // Sends it and waits for it to come back.
  absl::Status Echo(const Payload& payload) {
    RETURN_IF_ERROR(Send(payload));
    ASSIGN_OR_RETURN(
        const Message answer,
        port_.Receive(
            {.kinds = KindBit(header_.kind), .peer = peer_, .step = header_.step, .id = header_.id},
            deadline_));
    return answer.payload == payload ? absl::OkStatus() : Unexpected(port_, peer_);
  }

  // Seconds until `count` large messages have arrived.
  absl::StatusOr<double> Bulk(const Payload& payload, int count) {
    const Clock::TimePoint start = clock_.Now();
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(Send(payload));
    Payload request(2);
    request[0] = kAcknowledge;
    request[1] = static_cast<uint8_t>(count);
    RETURN_IF_ERROR(Echo(request));
    return SecondsSince(clock_, start);
  }

 private:
  MessagePort& port_;
  const int32_t peer_;
  MessageHeader header_;
  const Clock::TimePoint deadline_;
  const SystemClock clock_;
};

absl::StatusOr<double> MedianRoundTrip(Prober& prober, int count) {
  const SystemClock clock;
  Payload ping(kLinkProbeSmallBytes);
  std::fill(ping.begin(), ping.end(), uint8_t{kEcho});
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const Clock::TimePoint start = clock.Now();
    RETURN_IF_ERROR(prober.Echo(ping));
    seconds.push_back(SecondsSince(clock, start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  return seconds[count / 2];
}

absl::StatusOr<double> BytesPerSecond(Prober& prober, const LinkProbeOptions& options) {
  Payload bulk(options.bulk_bytes);
  std::fill(bulk.begin(), bulk.end(), uint8_t{kBulk});
  double rate = 0;
  for (int count = 1; count <= options.max_bulk_messages; count *= 2) {
    ASSIGN_OR_RETURN(const double seconds, prober.Bulk(bulk, count));
    rate = static_cast<double>(options.bulk_bytes) * count / std::max(seconds, 1e-9);
    if (seconds >= options.run_seconds) break;
  }
  return rate;
}

}  // namespace

absl::StatusOr<LinkMeasurement> MeasureLink(MessagePort& port, int32_t peer,
                                            const LinkProbeOptions& options,
                                            Clock::TimePoint deadline) {
  if (options.round_trips < 1 || options.bulk_bytes < 1 || options.max_bulk_messages < 1 ||
      options.max_bulk_messages > 255 || options.key.kind >= kMessageKinds) {
    return absl::InvalidArgumentError("link probe options out of range");
  }
  Prober prober(port, peer, options.key, deadline);
  LinkMeasurement result;
  ASSIGN_OR_RETURN(const double seconds, MedianRoundTrip(prober, options.round_trips));
  result.round_trip_us = seconds * 1e6;
  result.latency_us = result.round_trip_us / 2;
  ASSIGN_OR_RETURN(result.bytes_per_s, BytesPerSecond(prober, options));
  Payload end(1);
  end[0] = kEnd;
  RETURN_IF_ERROR(prober.Send(end));
  return result;
}

absl::Status AnswerLinkProbe(MessagePort& port, int32_t peer, const LinkProbeOptions& options,
                             Clock::TimePoint deadline) {
  if (options.key.kind >= kMessageKinds) {
    return absl::InvalidArgumentError("link probe options out of range");
  }
  int bulk_count = 0;
  while (true) {
    ASSIGN_OR_RETURN(
        const Message message,
        port.Receive({.kinds = KindBit(options.key.kind), .peer = peer, .step = options.key.step},
                     deadline));
    if (message.payload.empty()) return Unexpected(port, peer);
    switch (message.payload[0]) {
      case kEcho:
        RETURN_IF_ERROR(SendBytes(port, peer, message.header, message.payload));
        break;
      case kBulk:
        ++bulk_count;
        break;
      case kAcknowledge: {
        // A small message may overtake large ones.
        if (message.payload.size() != 2) return Unexpected(port, peer);
        for (; bulk_count < message.payload[1]; ++bulk_count) {
          ASSIGN_OR_RETURN(const Message bulk, port.Receive({.kinds = KindBit(options.key.kind),
                                                             .peer = peer,
                                                             .step = options.key.step},
                                                            deadline));
          if (bulk.payload.empty() || bulk.payload[0] != kBulk) return Unexpected(port, peer);
        }
        bulk_count = 0;
        RETURN_IF_ERROR(SendBytes(port, peer, message.header, message.payload));
        break;
      }
      case kEnd:
        return absl::OkStatus();
      default:
        return Unexpected(port, peer);
    }
  }
}

}  // namespace weft
