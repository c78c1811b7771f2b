// Why sleeping is safe: a sleeper first announces itself, then looks once more at the value it
// waits for; who changes the value looks for sleepers afterwards. All four are sequentially
// consistent, so at least one side sees the other, and the mutex closes the gap up to the wait.
#include "common/cpu/compute_pool.h"

#include <sched.h>

#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// About 20 microseconds: longer than the gap between two operations of a step.
constexpr int kSpins = 1000;

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ComputePool::ComputePool(int threads)
    : threads_(threads), spins_(threads <= AvailableCores() ? kSpins : 0) {}

absl::StatusOr<std::unique_ptr<ComputePool>> ComputePool::Create(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat(threads, " threads; from 1 to ", kMaxThreads, " are possible"));
  }
  std::unique_ptr<ComputePool> pool(new ComputePool(threads));
  RETURN_IF_ERROR(pool->Start());
  return pool;
}

absl::Status ComputePool::Start() {
  try {
    for (int worker = 1; worker < threads_; ++worker) {
      workers_.emplace_back([this, worker] { WorkerLoop(worker); });
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start thread ", workers_.size() + 1,
                                                     " of ", threads_ - 1, ": ", error.what()));
  }
  return absl::OkStatus();
}

ComputePool::~ComputePool() {
  stop_.store(true);
  {
    MutexLock lock(mutex_);
    work_.NotifyAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ComputePool::Run(Task task, Idle idle) {
  if (threads_ == 1) {
    task(0);
    return;
  }
  task_ = &task;
  running_.store(threads_ - 1);
  generation_.fetch_add(1);
  if (sleepers_.load() > 0) {
    MutexLock lock(mutex_);
    work_.NotifyAll();
  }
  task(0);
  WaitForWorkers(idle);
  task_ = nullptr;
}

void ComputePool::WaitForWorkers(Idle idle) {
  for (int i = 0; i < spins_; ++i) {
    if (running_.load() == 0) return;
    Pause();
  }
  while (running_.load() != 0) {
    idle();
    MutexLock lock(mutex_);
    caller_sleeps_.store(true);
    if (running_.load() != 0) {
      done_.WaitUntil(mutex_, SystemClock().Now() + kWaitPeriod);
    }
    caller_sleeps_.store(false);
  }
}

void ComputePool::FinishTask() {
  if (running_.fetch_sub(1) != 1) return;
  if (caller_sleeps_.load()) {
    MutexLock lock(mutex_);
    done_.NotifyOne();
  }
}

bool ComputePool::WaitForWork(uint64_t seen) {
  for (int i = 0; i < spins_; ++i) {
    if (generation_.load() != seen) return true;
    if (stop_.load()) return false;
    Pause();
  }
  MutexLock lock(mutex_);
  sleepers_.fetch_add(1);
  while (generation_.load() == seen && !stop_.load()) work_.Wait(mutex_);
  sleepers_.fetch_sub(1);
  return generation_.load() != seen;
}

void ComputePool::WorkerLoop(int worker) {
  for (uint64_t seen = 0; WaitForWork(seen); ++seen) {
    (*task_)(worker);
    FinishTask();
  }
}

}  // namespace weft
