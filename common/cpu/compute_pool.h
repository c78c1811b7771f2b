// The threads of a CPU device: fork and join over numbered pieces of work.
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
// thread. Every worker has its share of the pieces and takes over pieces of others when its own are
// done, so a worker that the system does not let run holds nobody up: the caller waits only for
// pieces that someone has begun. Waiting is a short spin, then sleep; with more workers than cores
// it is sleep at once. Run is for one thread at a time and is not called from inside a task.
class ComputePool {
 public:
  using Task = absl::FunctionRef<void(int64_t piece, int worker)>;
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

  // Calls task(piece, worker) once for every piece in [0, pieces); returns when all are done, and
  // everything they wrote is then visible to the caller. A worker does one piece at a time. Which
  // worker does which piece is not defined. Allocates nothing.
  void Run(int64_t pieces, Task task, Idle idle);
  void Run(int64_t pieces, Task task) {
    Run(pieces, task, [] {});
  }

 private:
  static constexpr std::chrono::microseconds kWaitPeriod{500};

  // The pieces of one worker that nobody has begun.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  explicit ComputePool(int threads);
  absl::Status Start();
  void WorkerLoop(int worker);
  // Waits for a generation other than *seen and stores it there; false if the pool stops.
  bool WaitForWork(uint64_t* seen);
  // False if the task of that generation is over.
  bool Join(uint64_t generation);
  void Leave();
  void DoPieces(int worker);
  void WaitForWorkers(Idle idle);

  const int threads_;
  const int spins_;  // iterations before sleep
  std::vector<std::thread> workers_;

  // The task; written while no worker is inside, read only inside.
  const Task* task_ = nullptr;
  std::vector<Share> shares_;

  // Generation of the task, whether workers may still join it, and how many are inside.
  std::atomic<uint64_t> state_{0};
  std::atomic<bool> stop_{false};

  Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::atomic<int> sleepers_{0};            // workers at work_
  std::atomic<bool> caller_sleeps_{false};  // worker 0 at done_
};

}  // namespace weft
