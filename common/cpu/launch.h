// One launch of an executable: the pool, the kernels, scratch memory and the progress callback, as
// the ops see them.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/cpu/compute_pool.h"
#include "common/cpu/kernels/kernel_table.h"
#include "common/cpu/reference/host_tensor.h"
#include "common/graph/graph.h"

namespace weft::cpu {

class Launch {
 public:
  // Everything is borrowed. `progress` may be empty.
  Launch(ComputePool& pool, const KernelTable& kernels, uint8_t* workspace,
         const std::function<void()>& progress)
      : pool_(pool), kernels_(kernels), workspace_(workspace), progress_(progress) {}

  const KernelTable& kernels() const { return kernels_; }
  int threads() const { return pool_.threads(); }
  // As many bytes as the op's workspace function said, aligned to 64; shared by all workers.
  uint8_t* workspace() const { return workspace_; }

  // Calls body(first, last, worker) so that the ranges cover [0, count) once. Each worker has one
  // contiguous share, walked in pieces of roughly kPieceWork. `work` is the cost of one unit in
  // element operations; below kParallelWork in all, worker 0 does everything and wakes nobody.
  using Body = absl::FunctionRef<void(int64_t first, int64_t last, int worker)>;
  void ForRange(int64_t count, int64_t work, Body body);

  // Calls task(worker) once for each worker; the task calls Tick between its own pieces.
  void OnAllWorkers(ComputePool::Task task) {
    pool_.Run(task, [this] { Tick(0); });
  }

  // Worker 0 calls the progress callback if half a millisecond has passed; others do nothing.
  void Tick(int worker);

  static constexpr int64_t kParallelWork = 32768;
  static constexpr int64_t kPieceWork = 1 << 18;

 private:
  ComputePool& pool_;
  const KernelTable& kernels_;
  uint8_t* workspace_;
  const std::function<void()>& progress_;
  Clock::TimePoint last_progress_ = SystemClock().Now();
};

// Worker w's share of [0, count).
struct Share {
  int64_t first;
  int64_t last;
};
inline Share ShareOf(int64_t count, int worker, int threads) {
  return {count * worker / threads, count * (worker + 1) / threads};
}

// What a workspace function says where the size overflows: more than any device has.
inline constexpr int64_t kTooMuch = int64_t{1} << 60;

// The format of a type in the kernel table; kFormatCount if it has none.
Format FormatOf(DType dtype);

}  // namespace weft::cpu
