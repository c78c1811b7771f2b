// Time behind an interface, so that tests and the cluster simulator can own it.
#pragma once

#include <chrono>

namespace weft {

class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// The steady clock of this machine.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

// Seconds from `start` to now on `clock`.
inline double SecondsSince(const Clock& clock, Clock::TimePoint start) {
  return std::chrono::duration<double>(clock.Now() - start).count();
}

}  // namespace weft
