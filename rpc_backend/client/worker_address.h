// Where a worker listens, as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

inline constexpr int32_t kDefaultWorkerPort = 7000;

struct WorkerAddress {
  std::string host;  // a name, an IPv4 or (without brackets) an IPv6 address; empty for a socket
  int32_t port = kDefaultWorkerPort;
  std::string socket_path;  // of a Unix socket

  // "10.0.0.2:7000", "[fe80::1]:7000", "unix:/run/weft.sock".
  std::string Text() const;
};

// Takes "HOST", "HOST:PORT", "IPV6", "[IPV6]:PORT" and "unix:PATH".
// Errors: INVALID_ARGUMENT naming the text and what is wrong with it.
absl::StatusOr<WorkerAddress> ParseWorkerAddress(std::string_view text);

}  // namespace weft
