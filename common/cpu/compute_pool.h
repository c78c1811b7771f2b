// The threads of a CPU device: fork and join with a static partition of the work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace weft {

// A fixed number of workers; worker 0 is the thread that calls Run, so a pool of one starts no
// thread. Waiting is a short spin, then sleep; with more workers than cores it is sleep at once.
// Run is for one thread at a time and is not called from inside a task.
class ComputePool {
 public:
  using Task = absl::FunctionRef<void(int worker)>;
  // Called by worker 0 while it waits, at most kWaitPeriod apart.
  using Idle = absl::FunctionRef<void()>;
  static constexpr int kMaxThreads = 1024;

  // Errors: INVALID_ARGUMENT unless 1 <= threads <= kMaxThreads; RESOURCE_EXHAUSTED where the
  // system gives no thread.
  static absl::StatusOr<std::unique_ptr<ComputePool>> Create(int threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return threads_; }

  // Calls task(worker) once for every worker, each on its own thread; returns when all are done,
  // and everything they wrote is then visible to the caller. Allocates nothing.
  void Run(Task task, Idle idle);
  void Run(Task task) {
    Run(task, [] {});
  }

 private:
  static constexpr std::chrono::microseconds kWaitPeriod{500};

  explicit ComputePool(int threads);
  absl::Status Start();
  void WorkerLoop(int worker);
  // The generation after `seen`; nothing if the pool stops.
  bool WaitForWork(uint64_t seen);
  void WaitForWorkers(Idle idle);
  void FinishTask();

  const int threads_;
  const int spins_;  // iterations before sleep
  std::vector<std::thread> workers_;

  const Task* task_ = nullptr;  // written before generation_, read after it
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> running_{0};  // workers that have not finished the task, without worker 0
  std::atomic<bool> stop_{false};

  Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::atomic<int> sleepers_{0};            // workers at work_
  std::atomic<bool> caller_sleeps_{false};  // worker 0 at done_
};

}  // namespace weft
