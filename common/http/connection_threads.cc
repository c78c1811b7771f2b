#include "common/http/connection_threads.h"

#include <utility>

#include "common/base/thread.h"

namespace weft {

void ConnectionThreads::enqueue(std::function<void()> connection) {
  bool taken = false;
  {
    MutexLock lock(mutex_);
    while (waiting_.size() >= most_ && !ending_) changed_.Wait(mutex_);
    waiting_.push_back(std::move(connection));
    if (waiting_.size() > idle_ && threads_.size() < most_) {
      absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
      if (thread.ok()) threads_.push_back(*std::move(thread));
    }
    changed_.NotifyAll();
    taken = waiting_.size() > idle_ && threads_.size() == most_;
    connection = nullptr;
    if (threads_.empty()) {
      // The system gives no thread at all: this one does it.
      connection = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }
  if (taken) crowded_();
  if (connection) connection();
}

void ConnectionThreads::Run() {
  while (true) {
    std::function<void()> connection;
    {
      MutexLock lock(mutex_);
      ++idle_;
      while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
      --idle_;
      if (waiting_.empty()) return;
      connection = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.NotifyAll();
    }
    connection();
  }
}

bool ConnectionThreads::Crowded() const {
  MutexLock lock(mutex_);
  return waiting_.size() > idle_;
}

void ConnectionThreads::shutdown() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    ending_ = true;
    threads.swap(threads_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weft
