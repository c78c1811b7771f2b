// Threads whose start can fail with a status.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace weft {

// Runs `body` on a new thread, which the caller joins. Errors: RESOURCE_EXHAUSTED where the system
// gives no more threads.
absl::StatusOr<std::thread> StartThread(std::function<void()> body);

}  // namespace weft
