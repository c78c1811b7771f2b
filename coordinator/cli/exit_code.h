// What the shell sees of a Status (decision 23): 0 success, 1 run-time failure, 2 bad input or
// usage, 3 a worker was lost.
#pragma once

#include "absl/status/status.h"

namespace weft {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitWorkerLost = 3;

int ExitCode(const absl::Status& status);

}  // namespace weft
