// The same work for several things at once.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace weft {

// Runs `work(i)` for all i below `count` at the same time, a thread for each but the first, which
// the caller's runs. Returns when all have: the error of the lowest i that has one, which may be
// that a thread did not start.
absl::Status RunParallel(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace weft
