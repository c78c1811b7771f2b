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

// Fields of the state word.
constexpr uint64_t kInsideMask = 0xFFFF;
constexpr uint64_t kOpen = 0x10000;
constexpr int kGenerationShift = 17;

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
    : threads_(threads),
      spins_(threads <= AvailableCores() ? kSpins : 0),
      shares_(static_cast<size_t>(threads)) {}

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

void ComputePool::Run(int64_t pieces, Task task, Idle idle) {
  if (threads_ == 1 || pieces < 2) {
    for (int64_t piece = 0; piece < pieces; ++piece) task(piece, 0);
    return;
  }
  task_ = &task;
  for (int64_t worker = 0; worker < threads_; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    share.next.store(pieces * worker / threads_, std::memory_order_relaxed);
    share.end = pieces * (worker + 1) / threads_;
  }
  const uint64_t generation = (state_.load() >> kGenerationShift) + 1;
  state_.store(generation << kGenerationShift | kOpen);
  if (sleepers_.load() > 0) {
    MutexLock lock(mutex_);
    work_.NotifyAll();
  }
  DoPieces(0);
  state_.fetch_and(~kOpen);
  WaitForWorkers(idle);
}

void ComputePool::DoPieces(int worker) {
  for (int i = 0; i < threads_; ++i) {
    Share& share = shares_[static_cast<size_t>((worker + i) % threads_)];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
      if (piece < share.end) (*task_)(piece, worker);
    }
  }
}

void ComputePool::WaitForWorkers(Idle idle) {
  for (int i = 0; i < spins_; ++i) {
    if ((state_.load() & kInsideMask) == 0) return;
    Pause();
  }
  while ((state_.load() & kInsideMask) != 0) {
    idle();
    MutexLock lock(mutex_);
    caller_sleeps_.store(true);
    if ((state_.load() & kInsideMask) != 0) {
      done_.WaitUntil(mutex_, SystemClock().Now() + kWaitPeriod);
    }
    caller_sleeps_.store(false);
  }
}

bool ComputePool::Join(uint64_t generation) {
  uint64_t state = state_.load();
  while (state >> kGenerationShift == generation && (state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1)) return true;
  }
  return false;
}

void ComputePool::Leave() {
  const uint64_t before = state_.fetch_sub(1);
  if ((before & kInsideMask) == 1 && (before & kOpen) == 0 && caller_sleeps_.load()) {
    MutexLock lock(mutex_);
    done_.NotifyOne();
  }
}

bool ComputePool::WaitForWork(uint64_t* seen) {
  const auto changed = [&] { return state_.load() >> kGenerationShift != *seen; };
  for (int i = 0; i < spins_ && !changed() && !stop_.load(); ++i) Pause();
  if (!changed()) {
    MutexLock lock(mutex_);
    sleepers_.fetch_add(1);
    while (!changed() && !stop_.load()) work_.Wait(mutex_);
    sleepers_.fetch_sub(1);
  }
  *seen = state_.load() >> kGenerationShift;
  return !stop_.load();
}

void ComputePool::WorkerLoop(int worker) {
  for (uint64_t seen = 0; WaitForWork(&seen);) {
    if (!Join(seen)) continue;
    DoPieces(worker);
    Leave();
  }
}

}  // namespace weft
