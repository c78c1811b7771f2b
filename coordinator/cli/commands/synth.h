// `weft synth`: writes a model with random weights, for benchmarks and tests. Memory use is that of
// the header and one piece of a tensor, whatever the size of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/cli/synth/synth_plan.h"

namespace weft {

struct SynthOptions {
  std::string path;
  SynthModel model;
  uint64_t seed = 1;
  // Called after each piece with the bytes of tensor data written and to be written; may be empty.
  std::function<void(int64_t bytes_done, int64_t bytes_total)> progress;
};

// Equal options give equal files. The file appears under its name when it is complete.
// Errors: those of MakeSynthPlan; INVALID_ARGUMENT if a width makes a deviation that RandomBlocks
// refuses; those of writing the file.
absl::Status WriteSyntheticModel(const SynthOptions& options);

}  // namespace weft
