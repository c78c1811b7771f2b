// Performs one rank's part of a schedule over whatever carries its messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/collectives/schedule.h"
#include "common/tensor/dtype.h"

namespace weft {

// Which collective, and when to give it up.
struct CollectiveCall {
  int64_t step = 0;
  int32_t id = 0;
  Clock::TimePoint deadline = Clock::TimePoint::max();
  // Ends waits with CANCELLED once it is set and the link's owner has woken them. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// Sees a message where it lies; the bytes are gone afterwards.
using TakeBytes = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

// Most ranks of a communicator, and collectives of a step.
inline constexpr int32_t kMaxCommunicatorRanks = 256;
inline constexpr int32_t kMaxCollectiveIds = 8192;

// One number for a message of a step: (collective, from, to, number).
int32_t CollectiveMessageId(int32_t collective, int32_t number, int32_t from, int32_t to);

// How one rank reaches the others. A message is found by (step, id, from, number).
class RankLink {
 public:
  virtual ~RankLink() = default;
  // Copies the bytes before it returns and never waits for the receiver.
  virtual absl::Status Send(const CollectiveCall& call, int32_t to, int32_t number,
                            absl::Span<const uint8_t> bytes) = 0;
  // Waits for that message, which has exactly `bytes` bytes. Errors name the rank: those of
  // Communicator::Run; DATA_LOSS for another size.
  virtual absl::Status Receive(const CollectiveCall& call, int32_t from, int32_t number,
                               int64_t bytes, TakeBytes take) = 0;
  virtual void Abort(absl::Status reason) = 0;
};

// Memory that a runner keeps from call to call.
struct RunnerScratch {
  std::vector<uint8_t> encoded;
  std::vector<float> terms;  // of a sum (TermSum), one behind the other
};

// `values` is the whole vector; elements that are not added may be of any four-byte type if `wire`
// is F32 or I32. Errors: those of the link, and of EncodeWire.
absl::Status RunRounds(absl::Span<const Round> rounds, DType wire, absl::Span<float> values,
                       RankLink& link, const CollectiveCall& call, RunnerScratch& scratch);

}  // namespace weft
