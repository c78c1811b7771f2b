// A few threads that run small tasks, with a bound on those that wait.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace weft {

// Any thread may call.
class TaskQueue {
 public:
  // As many of `threads` as the system gives; with none, tasks run where they are added. At most
  // `capacity` tasks wait for a thread.
  TaskQueue(int threads, size_t capacity);
  // Waits for what was added.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Waits while the queue is full.
  void Add(std::function<void()> task);
  // Waits until everything that was added before has run.
  void AwaitAll();

 private:
  void Run();

  const size_t capacity_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft
