// How the processes of a session hand tensors to each other while a step runs.
//
// A message is named by (step, edge): who sent it is known, when it arrives does not matter
// (decision 7). Ports know nothing of programs; what they carry is bytes.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"

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

  // Waits for the message that `peer` sends for that step and edge, and takes it. Ends without it
  // at `deadline`, and once `stop` was set and Wake called. Errors: DATA_LOSS unless it has exactly
  // bytes.size() bytes; DEADLINE_EXCEEDED; CANCELLED by `stop`; INVALID_ARGUMENT for an unknown
  // peer; UNAVAILABLE if the peer is lost.
  virtual absl::Status Receive(int64_t step, int32_t edge, int32_t peer, absl::Span<uint8_t> bytes,
                               Clock::TimePoint deadline, const std::atomic<bool>& stop) = 0;

  // Everyone who waits in Receive looks at its stop flag. One that finds it unset before a flag was
  // set must not sleep through the Wake that follows.
  virtual void Wake() = 0;

  // Nobody here receives messages of steps up to this one any more: what came for them is dropped,
  // and what still comes too. Calls may overlap, the largest step counts.
  virtual void Retire(int64_t step) = 0;
};

}  // namespace weft
