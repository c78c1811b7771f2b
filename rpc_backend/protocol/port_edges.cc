#include "rpc_backend/protocol/port_edges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/program/program_limits.h"

namespace weft {
namespace {

constexpr uint32_t kCollectiveKind = static_cast<uint32_t>(MessageKind::kCollective);

}  // namespace

// A collective names its ranks itself.
absl::Status PortEdges::InContext(int64_t step, int32_t edge, const absl::Status& status) const {
  if (kind_ == kCollectiveKind) return status;
  return absl::Status(status.code(),
                      absl::StrCat("hand-off ", edge, " of step ", step, ": ", status.message()));
}

absl::Status PortEdges::Send(int64_t step, int32_t edge, int32_t peer,
                             absl::Span<const uint8_t> bytes) {
  const MessageHeader header{.epoch = epoch_, .kind = kind_, .step = step, .id = edge};
  const absl::Status status = SendBytes(port_, peer, header, bytes);
  if (status.ok()) return status;
  const bool full = absl::IsDeadlineExceeded(status);
  return InContext(step, edge, full ? absl::ResourceExhaustedError(status.message()) : status);
}

absl::Status PortEdges::Take(int64_t step, int32_t edge, int32_t peer, int64_t bytes,
                             TakeBytes take, Clock::TimePoint deadline,
                             const std::atomic<bool>& stop) {
  receives_ = true;
  // A rank whose partner waits for a lost one would wait in vain.
  const MessageFilter filter{.kinds = KindBit(kind_),
                             .peer = peer,
                             .step = step,
                             .id = edge,
                             .ends_with_any_peer = kind_ == kCollectiveKind};
  absl::StatusOr<Message> message = port_.Receive(filter, deadline, &stop);
  if (!message.ok()) return InContext(step, edge, message.status());
  if (static_cast<int64_t>(message->payload.size()) != bytes) {
    return InContext(
        step, edge,
        absl::DataLossError(absl::StrCat(PeerText(port_, peer), " sent ", message->payload.size(),
                                         " bytes instead of ", bytes)));
  }
  take(message->payload);
  port_.Recycle(std::move(message->payload));
  return absl::OkStatus();
}

void PortEdges::Retire(int64_t step) {
  if (!receives_) return;
  int64_t first = 0;
  {
    MutexLock lock(mutex_);
    // The steps before it once more: their messages may have been late.
    first = std::max(std::min(retired_, step) - kMaxStepsInFlight, int64_t{0});
    first = std::max(first, step - 2 * kMaxStepsInFlight);
    retired_ = std::max(retired_, step);
  }
  for (int64_t over = first; over <= step; ++over) {
    const MessageFilter filter{.kinds = KindBit(kind_), .step = over};
    while (port_.Receive(filter, clock_.Now()).ok()) {
    }
  }
}

}  // namespace weft
