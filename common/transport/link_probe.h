// Measures the connection of two ports: how long a small message takes and how fast bytes flow.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/transport/message_port.h"

namespace weft {

struct LinkProbeOptions {
  // The key of its messages: their epoch, kind and step. Nothing else may use this kind and step
  // between the two ports meanwhile.
  MessageHeader key;
  // A few milliseconds in all where the link is fast, since sessions wait for it.
  int round_trips = 51;                     // of kLinkProbeSmallBytes, of which the median counts
  int64_t bulk_bytes = int64_t{256} << 10;  // of one large message
  int max_bulk_messages = 64;               // in one run
  double run_seconds = 0.01;                // runs get longer until one takes this long
};

// Bytes of a small message of a probe.
inline constexpr int64_t kLinkProbeSmallBytes = 64;

struct LinkMeasurement {
  double round_trip_us = 0;  // median
  double latency_us = 0;     // one way: half of it
  double bytes_per_s = 0;    // from this side to the other
};

// The side that measures; the other is in AnswerLinkProbe, or gets there before the deadline.
// Errors: those of Send and Receive; INVALID_ARGUMENT for options out of range or if the other side
// answers with something else.
absl::StatusOr<LinkMeasurement> MeasureLink(MessagePort& port, int32_t peer,
                                            const LinkProbeOptions& options,
                                            Clock::TimePoint deadline);

// Bytes per second at which all of `content` goes to the other side, which drops it, in messages of
// `bulk_bytes` of it, of which at most `window` (2 to 254, even) are on their way. Unlike
// MeasureLink, whose one message stays in the processor's cache, this reads as much memory as there
// is to send. Sides and errors as there.
absl::StatusOr<double> MeasureStream(MessagePort& port, int32_t peer,
                                     const LinkProbeOptions& options,
                                     absl::Span<const uint8_t> content, int window,
                                     Clock::TimePoint deadline);

// The other side: returns when `peer` has finished. Only `options.key` matters.
absl::Status AnswerLinkProbe(MessagePort& port, int32_t peer, const LinkProbeOptions& options,
                             Clock::TimePoint deadline);

}  // namespace weft
