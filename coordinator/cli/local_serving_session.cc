#include "coordinator/cli/local_serving_session.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/cli/process_counters.h"

namespace weft {
namespace {

class LocalServingSession final : public ServingSession {
 public:
  LocalServingSession(std::unique_ptr<LocalSession> session, FleetBoard* board)
      : session_(std::move(session)), board_(board) {}
  ~LocalServingSession() override {
    if (board_ != nullptr) board_->Clear();
  }

  ModelRunner& runner() override { return session_->runner(); }
  absl::Status lost() override {
    return session_->fleet() == nullptr ? absl::OkStatus() : session_->fleet()->lost();
  }
  absl::Status leaving() override {
    return session_->fleet() == nullptr ? absl::OkStatus() : session_->fleet()->leaving();
  }
  int64_t stages() const override { return session_->stages(); }
  std::vector<ProcessTimes> processes() override {
    std::vector<ProcessTimes> times;
    for (ProcessCounters& c : ReadProcessCounters(session_->group(), session_->fleet())) {
      times.push_back({std::move(c.name), c.steps, c.compute_seconds, c.wait_seconds,
                       c.round_trip_seconds, c.hand_off_bytes, c.program_sends});
    }
    return times;
  }

  std::vector<TransportBytes> transports() override {
    std::vector<TransportBytes> sums;
    if (session_->fleet() == nullptr) return sums;
    for (const PeerTraffic& peer : session_->fleet()->link().port().traffic()) {
      const auto found = std::find_if(sums.begin(), sums.end(), [&](const TransportBytes& sum) {
        return sum.transport == peer.transport;
      });
      TransportBytes& sum = found != sums.end() ? *found : sums.emplace_back();
      sum.transport = peer.transport;
      sum.sent += peer.Total().bytes_sent;
      sum.received += peer.Total().bytes_received;
    }
    return sums;
  }

 private:
  const std::unique_ptr<LocalSession> session_;
  FleetBoard* const board_;
};

}  // namespace

OpenServingSession OpenLocalServingSession(const ModelFlags& flags, const SessionNeeds& needs,
                                           const Clock& clock, Logger& logger, FleetBoard* board) {
  return
      [flags, needs, &clock, &logger, board]() -> absl::StatusOr<std::unique_ptr<ServingSession>> {
        const SamplerOptions usual;
        SessionNeeds all = needs;
        all.sampler = &usual;
        ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session,
                         LocalSession::Open(flags, all, clock, logger));
        if (board != nullptr) RETURN_IF_ERROR(board->Show(*session));
        return std::make_unique<LocalServingSession>(std::move(session), board);
      };
}

}  // namespace weft
