// Where a worker listens, and whether others can reach it there.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/host_address.h"

namespace weft {

struct ListenAddress : HostAddress {
  bool loopback = false;  // only this machine can reach it (a Unix socket too)
};

// Takes what ParseHostAddress takes, port 0 too, and looks the host up. Errors: INVALID_ARGUMENT
// naming the flag and the text.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text);

// Whether a process serves that Unix socket already: gRPC would take its place in silence. False
// for other addresses, and for a file that nobody serves any more.
bool IsSocketServed(const HostAddress& address);

// Whether that host means all interfaces, so that nobody can connect to it by that name.
bool IsWildcard(std::string_view host);

}  // namespace weft
