// Hand-offs between processes, or messages between ranks, as messages of a port: found by (kind,
// step, edge, peer).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/mutex.h"
#include "common/program/edge_port.h"
#include "common/transport/message_port.h"
#include "rpc_backend/protocol/message_kinds.h"

namespace weft {

class PortEdges final : public EdgePort {
 public:
  // `port` is one of that epoch and outlives this.
  PortEdges(MessagePort& port, uint32_t epoch, MessageKind kind = MessageKind::kEdge)
      : port_(port), epoch_(epoch), kind_(static_cast<uint32_t>(kind)) {}

  absl::Status Send(int64_t step, int32_t edge, int32_t peer,
                    absl::Span<const uint8_t> bytes) override;
  absl::Status Take(int64_t step, int32_t edge, int32_t peer, int64_t bytes, TakeBytes take,
                    Clock::TimePoint deadline, const std::atomic<bool>& stop) override;
  void Wake() override { port_.Wake(); }
  // What comes more than a few steps late stays in the port, within its bounds.
  void Retire(int64_t step) override;

 private:
  absl::Status InContext(int64_t step, int32_t edge, const absl::Status& status) const;

  MessagePort& port_;
  const uint32_t epoch_;
  const uint32_t kind_;
  const SystemClock clock_;
  std::atomic<bool> receives_ = false;  // whether anybody ever did
  Mutex mutex_;
  int64_t retired_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
