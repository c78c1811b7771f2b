// For how long a worker has been silent, as far as this process was awake to hear it.
#pragma once

#include <algorithm>

#include "common/base/clock.h"

namespace weft {

// Looked at every so often: time between two looks counts at most `longest_look`, so a process that
// was itself stopped, or had no processor, does not blame the worker before it had a chance to read
// what had arrived. Not thread-safe.
class SilenceMeter {
 public:
  using Duration = Clock::TimePoint::duration;
  SilenceMeter(Clock::TimePoint now, Duration longest_look)
      : longest_look_(longest_look), looked_(now) {}

  void Heard() { silent_ = Duration::zero(); }
  // Returns the silence so far.
  Duration Look(Clock::TimePoint now) {
    silent_ += std::min(now - looked_, longest_look_);
    looked_ = now;
    return silent_;
  }

 private:
  const Duration longest_look_;
  Clock::TimePoint looked_;
  Duration silent_ = Duration::zero();
};

}  // namespace weft
