// Whether what is said to a host stays within this machine.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft {

// Whether every address of that host is one of the loopback interface: 127.0.0.0/8 or ::1. Errors:
// INVALID_ARGUMENT where the name cannot be looked up, with the reason.
absl::StatusOr<bool> IsLoopbackHost(const std::string& host);

}  // namespace weft
