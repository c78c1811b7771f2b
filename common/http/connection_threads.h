// Threads for connections: made when they are needed, up to a number, then reused.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace weft {

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  // `crowded` is called when a connection has to wait since all threads are taken.
  ConnectionThreads(size_t most, std::function<void()> crowded)
      : most_(most), crowded_(std::move(crowded)) {}
  ~ConnectionThreads() override { shutdown(); }

  // Waits while all threads are taken and as many connections wait already, so that what comes
  // beyond stays in the listener's backlog.
  void enqueue(std::function<void()> connection) override;
  // Runs what waits, then ends the threads.
  void shutdown() override;

  // Some connection waits for a thread.
  bool Crowded() const;

 private:
  void Run();

  const size_t most_;
  const std::function<void()> crowded_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
