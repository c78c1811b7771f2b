// Hand-offs between processes as messages of a port: kind kEdge, found by (step, edge, peer).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/mutex.h"
#include "common/program/edge_port.h"
#include "common/transport/message_port.h"

namespace weft {

class PortEdges final : public EdgePort {
 public:
  // `port` is one of that epoch and outlives this.
  PortEdges(MessagePort& port, uint32_t epoch) : port_(port), epoch_(epoch) {}

  absl::Status Send(int64_t step, int32_t edge, int32_t peer,
                    absl::Span<const uint8_t> bytes) override;
  absl::Status Receive(int64_t step, int32_t edge, int32_t peer, absl::Span<uint8_t> bytes,
                       Clock::TimePoint deadline, const std::atomic<bool>& stop) override;
  void Wake() override { port_.Wake(); }
  // What comes more than a few steps late stays in the port, within its bounds.
  void Retire(int64_t step) override;

 private:
  MessagePort& port_;
  const uint32_t epoch_;
  const SystemClock clock_;
  std::atomic<bool> receives_ = false;  // whether anybody ever did
  Mutex mutex_;
  int64_t retired_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
