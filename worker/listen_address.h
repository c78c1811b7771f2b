// Where a worker listens.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

struct ListenAddress {
  std::string host;       // without brackets; empty for a socket
  std::string port;       // digits; "0": any
  bool loopback = false;  // only this machine can reach it (a Unix socket too)
};

// Takes "HOST:PORT", "[IPV6]:PORT" and "unix:PATH" and looks the host up. Errors: INVALID_ARGUMENT
// naming the flag and the text.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text);

// Whether that host means all interfaces, so that nobody can connect to it by that name.
bool IsWildcard(std::string_view host);

}  // namespace weft
