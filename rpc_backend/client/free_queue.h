// Frees buffers of a worker behind the back of whoever drops them, in order, one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace weft {

// Any thread may call.
class FreeQueue {
 public:
  // `free` is called with each handle, from a thread of this object.
  explicit FreeQueue(std::function<void(int64_t)> free) : free_(std::move(free)) {}
  // Drops what waits; waits for the call in progress.
  ~FreeQueue();
  FreeQueue(const FreeQueue&) = delete;
  FreeQueue& operator=(const FreeQueue&) = delete;

  // Before the first Add. Errors: RESOURCE_EXHAUSTED where there are no more threads.
  absl::Status Start();
  void Add(int64_t handle);
  // Waits until everything added before was freed; false if the deadline passed first.
  bool Flush(Clock::TimePoint deadline);
  // Drops what waits and everything added later.
  void Stop();

 private:
  void Run();

  const std::function<void(int64_t)> free_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<int64_t> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace weft
