// How the processes of a session hand tensors to each other while a step runs.
//
// A message is named by (step, edge): who sent it is known, when it arrives does not matter
// (decision 7). Ports know nothing of programs; what they carry is bytes. Collectives have a port
// of their own, whose "edges" name the messages between ranks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/collectives/schedule_runner.h"

namespace weft {

// One process's end. Threads of several devices call it at once.
class EdgePort {
 public:
  virtual ~EdgePort() = default;

  // Hands `bytes` to process `peer`. Copies them before it returns and never waits for the
  // receiver. Errors: INVALID_ARGUMENT for an unknown peer; RESOURCE_EXHAUSTED if too much waits to
  // be received; UNAVAILABLE if the peer is lost.
  virtual absl::Status Send(int64_t step, int32_t edge, int32_t peer,
                            absl::Span<const uint8_t> bytes) = 0;

  // Waits for the message that `peer` sends for that step and edge, and takes it where it lies.
  // Ends without it at `deadline`, and once `stop` was set and Wake called. Errors: DATA_LOSS
  // unless it has exactly `bytes` bytes; DEADLINE_EXCEEDED; CANCELLED by `stop`; INVALID_ARGUMENT
  // for an unknown peer; UNAVAILABLE if the peer is lost.
  virtual absl::Status Take(int64_t step, int32_t edge, int32_t peer, int64_t bytes, TakeBytes take,
                            Clock::TimePoint deadline, const std::atomic<bool>& stop) = 0;
  // The same, copied to `bytes`.
  absl::Status Receive(int64_t step, int32_t edge, int32_t peer, absl::Span<uint8_t> bytes,
                       Clock::TimePoint deadline, const std::atomic<bool>& stop) {
    return Take(
        step, edge, peer, static_cast<int64_t>(bytes.size()),
        [bytes](absl::Span<const uint8_t> message) {
          std::copy(message.begin(), message.end(), bytes.begin());
        },
        deadline, stop);
  }

  // Everyone who waits in Receive looks at its stop flag. One that finds it unset before a flag was
  // set must not sleep through the Wake that follows.
  virtual void Wake() = 0;

  // Nobody here receives messages of steps up to this one any more: what came for them is dropped,
  // and what still comes too. Calls may overlap, the largest step counts.
  virtual void Retire(int64_t step) = 0;
};

}  // namespace weft
