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

  // Calls body(first, last, worker) so that the ranges cover [0, count) once, in pieces of at most
  // roughly kPieceWork. `work` is the cost of one unit in element operations; below kParallelWork
  // in all, worker 0 does everything and wakes nobody.
  using Body = absl::FunctionRef<void(int64_t first, int64_t last, int worker)>;
  void ForRange(int64_t count, int64_t work, Body body);

  // Calls task(piece, worker) for every piece in [0, pieces), on all workers; worker 0 ticks after
  // each. A task that can take longer ticks itself.
  void ForPieces(int64_t pieces, ComputePool::Task task);

  // Worker 0 calls the progress callback if half a millisecond has passed; others do nothing.
  void Tick(int worker);

  static constexpr int64_t kParallelWork = 32768;
  static constexpr int64_t kPieceWork = 1 << 18;
  // Pieces for each worker: enough that one who comes late costs little.
  static constexpr int64_t kPiecesPerWorker = 4;

 private:
  ComputePool& pool_;
  const KernelTable& kernels_;
  uint8_t* workspace_;
  const std::function<void()>& progress_;
  Clock::TimePoint last_progress_ = SystemClock().Now();
};

// Part number `part` of [0, count) cut into `parts`.
struct Part {
  int64_t first;
  int64_t last;
};
inline Part PartOf(int64_t count, int64_t part, int64_t parts) {
  // As count * part / parts, but without a product that could overflow.
  const int64_t whole = count / parts, rest = count % parts;
  return {whole * part + rest * part / parts, whole * (part + 1) + rest * (part + 1) / parts};
}

// What a workspace function says where the size overflows: more than any device has.
inline constexpr int64_t kTooMuch = int64_t{1} << 60;

// The format of a type in the kernel table; kFormatCount if it has none.
Format FormatOf(DType dtype);

}  // namespace weft::cpu
