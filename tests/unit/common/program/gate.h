// Holds threads at a point until the test lets them go.
#pragma once

#include "common/base/mutex.h"

namespace weft {

class Gate {
 public:
  // Returns once the gate is open. Counts who arrived.
  void Pass() {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void AwaitArrival(int count) {
    MutexLock lock(mutex_);
    while (arrived_ < count) changed_.Wait(mutex_);
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
