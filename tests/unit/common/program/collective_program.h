// Programs whose devices are ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace weft {

// ranks[r] is the process of rank r; those of one process are its devices in rank order.
struct RankedProgramOptions {
  std::vector<int32_t> process_of_rank = {0, 0};
  int32_t process = 0;  // whose program it is
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  DType wire = DType::kF32;
  std::vector<int64_t> counts = {2, 1};  // of the all_gather, by rank
  bool overlap = false;                  // steps
  bool detached = false;                 // the part is computed while the ranks add up
};

// Each rank r: x, an input of 64 values, times r + 1, summed over the ranks ("sum r"), plus 1: one
// output. Then a part of [counts[r], 3] with value 10 + r in each, gathered to [all, 3] ("all r"):
// another output. Collectives 4 and 7 of communicator 0.
Program RankedProgram(const RankedProgramOptions& options);

// What its outputs are for x, by rank.
std::vector<float> RankedSum(const RankedProgramOptions& options, const std::vector<float>& x);
std::vector<float> RankedGather(const RankedProgramOptions& options);

}  // namespace weft
