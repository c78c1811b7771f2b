#include "common/transport/link_probe.h"

#include <algorithm>
#include <deque>
#include <utility>
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

// Requests not yet answered: a sender waits for the first answer before one more.
constexpr size_t kMostRequests = 2;

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

  absl::Status SendBulk(absl::Span<const uint8_t> content) {
    constexpr uint8_t kWord = kBulk;
    ++header_.id;
    return port_.Send(peer_, header_, {{absl::MakeConstSpan(&kWord, 1), content}});
  }
  // Asks for an answer once that many kBulk have come since the last one.
  absl::Status Request(int count) { return Send(Acknowledgement(count)); }
  // The answer to the request that was sent as number `id`.
  absl::Status AwaitAnswer(int32_t id, int count) { return Await(id, Acknowledgement(count)); }
  int32_t last_id() const { return header_.id; }

  // Sends it and waits for it to come back.
  absl::Status Echo(const Payload& payload) {
    RETURN_IF_ERROR(Send(payload));
    return Await(header_.id, payload);
  }

  // Seconds until `count` large messages have arrived.
  absl::StatusOr<double> Bulk(const Payload& payload, int count) {
    const Clock::TimePoint start = clock_.Now();
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(Send(payload));
    RETURN_IF_ERROR(Echo(Acknowledgement(count)));
    return SecondsSince(clock_, start);
  }

 private:
  static Payload Acknowledgement(int count) {
    Payload request(2);
    request[0] = kAcknowledge;
    request[1] = static_cast<uint8_t>(count);
    return request;
  }

  absl::Status Await(int32_t id, const Payload& wanted) {
    ASSIGN_OR_RETURN(
        const Message answer,
        port_.Receive(
            {.kinds = KindBit(header_.kind), .peer = peer_, .step = header_.step, .id = id},
            deadline_));
    return answer.payload == wanted ? absl::OkStatus() : Unexpected(port_, peer_);
  }

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

// Half a window is answered while the other half is on its way.
absl::Status SendAll(Prober& prober, absl::Span<const uint8_t> content, size_t bytes, int half) {
  std::deque<std::pair<int32_t, int>> requests;  // not yet answered: id and count
  const auto await_first = [&]() -> absl::Status {
    RETURN_IF_ERROR(prober.AwaitAnswer(requests.front().first, requests.front().second));
    requests.pop_front();
    return absl::OkStatus();
  };
  int count = 0;
  for (size_t at = 0; at < content.size(); at += bytes) {
    RETURN_IF_ERROR(prober.SendBulk(content.subspan(at, bytes)));
    if (++count < half && content.size() - at > bytes) continue;
    RETURN_IF_ERROR(prober.Request(count));
    requests.emplace_back(prober.last_id(), count);
    count = 0;
    if (requests.size() == kMostRequests) RETURN_IF_ERROR(await_first());
  }
  while (!requests.empty()) RETURN_IF_ERROR(await_first());
  return absl::OkStatus();
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

absl::StatusOr<double> MeasureStream(MessagePort& port, int32_t peer,
                                     const LinkProbeOptions& options,
                                     absl::Span<const uint8_t> content, int window,
                                     Clock::TimePoint deadline) {
  if (options.bulk_bytes < 1 || window < 2 || window > 254 || window % 2 != 0 ||
      options.key.kind >= kMessageKinds) {
    return absl::InvalidArgumentError("link probe options out of range");
  }
  const SystemClock clock;
  Prober prober(port, peer, options.key, deadline);
  const Clock::TimePoint start = clock.Now();
  RETURN_IF_ERROR(SendAll(prober, content, static_cast<size_t>(options.bulk_bytes), window / 2));
  const double seconds = SecondsSince(clock, start);
  Payload end(1);
  end[0] = kEnd;
  RETURN_IF_ERROR(prober.Send(end));
  return static_cast<double>(content.size()) / std::max(seconds, 1e-9);
}

absl::Status AnswerLinkProbe(MessagePort& port, int32_t peer, const LinkProbeOptions& options,
                             Clock::TimePoint deadline) {
  if (options.key.kind >= kMessageKinds) {
    return absl::InvalidArgumentError("link probe options out of range");
  }
  const MessageFilter filter{
      .kinds = KindBit(options.key.kind), .peer = peer, .step = options.key.step};
  int bulk_count = 0;
  // Not yet answered, since small messages may overtake large ones.
  std::deque<Message> requests;
  while (true) {
    ASSIGN_OR_RETURN(Message message, port.Receive(filter, deadline));
    if (message.payload.empty()) return Unexpected(port, peer);
    switch (message.payload[0]) {
      case kEcho:
        RETURN_IF_ERROR(SendBytes(port, peer, message.header, message.payload));
        break;
      case kBulk:
        ++bulk_count;
        port.Recycle(std::move(message.payload));  // as who reads large messages does
        break;
      case kAcknowledge:
        if (message.payload.size() != 2 || requests.size() == kMostRequests) {
          return Unexpected(port, peer);
        }
        requests.push_back(std::move(message));
        break;
      case kEnd:
        return absl::OkStatus();
      default:
        return Unexpected(port, peer);
    }
    while (!requests.empty() && bulk_count >= requests.front().payload[1]) {
      bulk_count -= requests.front().payload[1];
      RETURN_IF_ERROR(SendBytes(port, peer, requests.front().header, requests.front().payload));
      requests.pop_front();
    }
  }
}

}  // namespace weft
