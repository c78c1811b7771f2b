// Statuses to and from (code, message) pairs: in replies of steps, and as gRPC statuses, whose
// codes are the same numbers.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// absl::StatusCode and grpc::StatusCode as a number; 0 for OK.
int WireCode(const absl::Status& status);
// The message, cut where it is longer than other sides accept.
std::string WireMessage(const absl::Status& status, const WireLimits& limits = {});

// Codes that do not exist become UNKNOWN. The message is cut, and escaped where it is not one line
// of clean UTF-8.
absl::Status StatusFromWire(int64_t code, std::string_view message, const WireLimits& limits = {});

}  // namespace weft
