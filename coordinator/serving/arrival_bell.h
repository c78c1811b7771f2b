// Rung where something arrived, for one who waits for several.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace weft {

// Any thread may call.
class ArrivalBell {
 public:
  void Ring() {
    {
      MutexLock lock(mutex_);
      ++count_;
    }
    // Who is woken finds the mutex free.
    changed_.NotifyAll();
  }
  // How often it rang. Read it before looking what has arrived.
  uint64_t count() const {
    MutexLock lock(mutex_);
    return count_;
  }
  // Until it has rung more often than that, or it is so late.
  void AwaitMore(uint64_t count, Clock::TimePoint until) {
    MutexLock lock(mutex_);
    while (count_ == count) {
      if (until == Clock::TimePoint::max()) {
        changed_.Wait(mutex_);
      } else if (!changed_.WaitUntil(mutex_, until)) {
        return;
      }
    }
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
