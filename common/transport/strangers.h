// Those who connected to a data port and have not proved who they are: which of them goes when
// there are too many, and who was turned away and why, in few lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"

namespace weft {

// How long a connection may take to prove itself.
inline constexpr std::chrono::seconds kProofTime{5};
// Connections to one port (UCX) or process (gRPC) that may be at it at the same time.
inline constexpr int64_t kMaxStrangers = 64;

// Which of the strangers makes room for the next: the first of those from where most come, so that
// a host that floods the port pushes out itself. `hosts` names where each comes from, the oldest
// first; not empty.
size_t StrangerToDrop(absl::Span<const std::string> hosts);

// "192.0.2.1" of "192.0.2.1:80", "[2001:db8::1]" of "[2001:db8::1]:80".
std::string_view HostOf(std::string_view socket_address);

// Says on a logger which connections were refused: a few at once, then one each ten seconds, which
// tells how many it stands for. Not thread-safe.
class RefusalLog {
 public:
  // All outlive it; `logger` may be null. `what` is what was refused.
  RefusalLog(Logger* logger, const Clock& clock, std::string_view what = "a data connection")
      : logger_(logger), clock_(clock), what_(what) {}

  // `who` is the address of the other side as the system knows it, empty if it does not.
  void Add(std::string_view who, std::string_view why);
  int64_t count() const { return count_; }

 private:
  Logger* const logger_;
  const Clock& clock_;
  const std::string_view what_;
  int64_t count_ = 0;
  int64_t unsaid_ = 0;
  int lines_ = 0;             // said since `since_`
  Clock::TimePoint since_{};  // when the period began
};

}  // namespace weft
