// What this machine can do at most, measured: the denominators of every performance figure that
// weft prints.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/cpu_features.h"

namespace weft {

struct MachineLimits {
  double read_bytes_per_s = 0;  // streamed reads from memory, all threads
  double int8_ops_per_s = 0;    // multiply and add count as two; registers only
  double f32_flops = 0;         // the same with fused multiply-adds
};

// Runs `threads` threads for about half a second in all. Each figure is the best of several rounds:
// neighbours only slow it down. The instruction set is the one that the kernels in question use.
MachineLimits MeasureMachineLimits(int32_t threads, InstructionSet isa, const Clock& clock);

}  // namespace weft
