#include "rpc_backend/client/free_queue.h"

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {

absl::Status FreeQueue::Start() {
  ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
  return absl::OkStatus();
}

FreeQueue::~FreeQueue() {
  Stop();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void FreeQueue::Add(int64_t handle) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(handle);
  ++added_;
  changed_.NotifyAll();
}

bool FreeQueue::Flush(Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  const int64_t target = added_;
  while (!stopped_ && freed_ < target) {
    if (!changed_.WaitUntil(mutex_, deadline)) return stopped_ || freed_ >= target;
  }
  return true;
}

void FreeQueue::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  changed_.NotifyAll();
}

void FreeQueue::Run() {
  while (true) {
    int64_t handle = 0;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      handle = waiting_.front();
      waiting_.pop_front();
    }
    free_(handle);
    MutexLock lock(mutex_);
    ++freed_;
    changed_.NotifyAll();
  }
}

}  // namespace weft
