#include "common/base/task_queue.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/thread.h"

namespace weft {

TaskQueue::TaskQueue(int threads, size_t capacity) : capacity_(std::max<size_t>(1, capacity)) {
  for (int i = 0; i < threads; ++i) {
    absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
    if (!thread.ok()) break;  // the others do the work
    threads_.push_back(*std::move(thread));
  }
}

TaskQueue::~TaskQueue() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskQueue::Add(std::function<void()> task) {
  if (threads_.empty()) {
    task();
    return;
  }
  MutexLock lock(mutex_);
  while (tasks_.size() >= capacity_) changed_.Wait(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

void TaskQueue::AwaitAll() {
  MutexLock lock(mutex_);
  while (!tasks_.empty() || running_ > 0) changed_.Wait(mutex_);
}

void TaskQueue::Run() {
  mutex_.Lock();
  while (true) {
    while (tasks_.empty() && !over_) changed_.Wait(mutex_);
    if (tasks_.empty()) break;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    changed_.NotifyAll();
    mutex_.Unlock();
    task();
    mutex_.Lock();
    --running_;
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace weft
