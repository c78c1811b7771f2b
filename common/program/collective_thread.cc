#include "common/program/collective_thread.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {

CollectiveThread::~CollectiveThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status CollectiveThread::Begin(const Step& step, const PreparedCollective& collective,
                                     absl::Span<float> vector) {
  if (!thread_.joinable()) {
    ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
  }
  ++begun_;
  MutexLock lock(mutex_);
  tasks_.push_back({&step, &collective, vector, false, absl::OkStatus()});
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status CollectiveThread::Finish(const PreparedCollective& collective) {
  MutexLock lock(mutex_);
  const auto is_it = [&](const Task& task) { return task.collective == &collective; };
  const auto find = [&] { return std::find_if(tasks_.begin(), tasks_.end(), is_it); };
  if (find() == tasks_.end()) return absl::InternalError("no such collective is under way");
  // Others are only ever added behind it, which moves none.
  while (!find()->done) changed_.Wait(mutex_);
  const auto task = find();
  absl::Status status = std::move(task->status);
  tasks_.erase(task);
  --begun_;
  return status;
}

void CollectiveThread::Drain() {
  if (begun_ == 0) return;
  MutexLock lock(mutex_);
  while (NextLocked() != nullptr) changed_.Wait(mutex_);
  tasks_.clear();
  begun_ = 0;
}

CollectiveThread::Task* CollectiveThread::NextLocked() {
  const auto next =
      std::find_if(tasks_.begin(), tasks_.end(), [](const Task& task) { return !task.done; });
  return next == tasks_.end() ? nullptr : &*next;
}

void CollectiveThread::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (NextLocked() == nullptr) {
        if (stopping_) return;
        changed_.Wait(mutex_);
      }
      task = *NextLocked();
    }
    double waited = 0;
    absl::Status status = runner_.Run(*task.step, *task.collective, task.vector, waited);
    MutexLock lock(mutex_);
    // Those before it may have been taken out meanwhile.
    Task& done = *NextLocked();
    done.status = std::move(status);
    done.done = true;
    changed_.NotifyAll();
  }
}

}  // namespace weft
