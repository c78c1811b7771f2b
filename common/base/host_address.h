// Where a process listens, as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

struct HostAddress {
  std::string host;  // a name, an IPv4 or (without brackets) an IPv6 address; empty for a socket
  int32_t port = 0;
  std::string socket_path;  // of a Unix socket

  // "10.0.0.2:7000", "[fe80::1]:7000", "unix:/run/weft.sock".
  std::string Text() const;
};

// Takes "HOST", "HOST:PORT", "IPV6", "[IPV6]:PORT" and "unix:PATH", with a port from `least_port`
// (0: any free one may be meant) to 65535, and `default_port` where none is written.
// Errors: INVALID_ARGUMENT with the text, in quotes, and what is wrong with it.
absl::StatusOr<HostAddress> ParseHostAddress(std::string_view text, int32_t default_port,
                                             int32_t least_port = 1);

}  // namespace weft
