#include "worker/listen_address.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/tls/host_reach.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(flag), ": ", why));
  };
  absl::StatusOr<HostAddress> parsed = ParseHostAddress(text, kDefaultWorkerPort, 0);
  if (!parsed.ok()) return bad(parsed.status().message());
  ListenAddress address{*std::move(parsed)};
  address.loopback = true;
  if (address.host.empty()) return address;
  const absl::StatusOr<bool> loopback = IsLoopbackHost(address.host);
  if (!loopback.ok()) {
    return bad(absl::StrCat("'", AbslView(text), "': ", loopback.status().message()));
  }
  address.loopback = *loopback;
  return address;
}

bool IsSocketServed(const HostAddress& address) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (address.socket_path.empty() || address.socket_path.size() >= sizeof name.sun_path)
    return false;
  std::copy(address.socket_path.begin(), address.socket_path.end(), name.sun_path);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return false;
  const int result = connect(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  const bool served = result == 0 || errno == EAGAIN;  // EAGAIN: it is busy
  close(descriptor);
  return served;
}

bool IsWildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace weft
