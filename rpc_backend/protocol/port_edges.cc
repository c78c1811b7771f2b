#include "rpc_backend/protocol/port_edges.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/program/program_limits.h"
#include "rpc_backend/protocol/message_kinds.h"

namespace weft {
namespace {

constexpr uint32_t kKind = static_cast<uint32_t>(MessageKind::kEdge);

absl::Status InContext(int64_t step, int32_t edge, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("hand-off ", edge, " of step ", step, ": ", status.message()));
}

}  // namespace

absl::Status PortEdges::Send(int64_t step, int32_t edge, int32_t peer,
                             absl::Span<const uint8_t> bytes) {
  const MessageHeader header{.epoch = epoch_, .kind = kKind, .step = step, .id = edge};
  const absl::Status status = SendBytes(port_, peer, header, bytes);
  if (status.ok()) return status;
  const bool full = absl::IsDeadlineExceeded(status);
  return InContext(step, edge, full ? absl::ResourceExhaustedError(status.message()) : status);
}

absl::Status PortEdges::Receive(int64_t step, int32_t edge, int32_t peer, absl::Span<uint8_t> bytes,
                                Clock::TimePoint deadline, const std::atomic<bool>& stop) {
  receives_ = true;
  const MessageFilter filter{.kinds = KindBit(kKind), .peer = peer, .step = step, .id = edge};
  const absl::StatusOr<Message> message = port_.Receive(filter, deadline, &stop);
  if (!message.ok()) return InContext(step, edge, message.status());
  if (message->payload.size() != bytes.size()) {
    return InContext(
        step, edge,
        absl::DataLossError(absl::StrCat("peer ", peer, " sent ", message->payload.size(),
                                         " bytes instead of ", bytes.size())));
  }
  if (!bytes.empty()) std::memcpy(bytes.data(), message->payload.data(), bytes.size());
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
    const MessageFilter filter{.kinds = KindBit(kKind), .step = over};
    while (port_.Receive(filter, clock_.Now()).ok()) {
    }
  }
}

}  // namespace weft
