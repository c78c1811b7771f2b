#include "worker/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(ip4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.sa_family == AF_INET6) {
    const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(address);
    return IN6_IS_ADDR_LOOPBACK(&ip6.sin6_addr);
  }
  return false;
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(flag), ": ", why));
  };
  absl::StatusOr<HostAddress> parsed = ParseHostAddress(text, kDefaultWorkerPort, 0);
  if (!parsed.ok()) return bad(parsed.status().message());
  ListenAddress address{*std::move(parsed)};
  address.loopback = true;
  if (address.host.empty()) return address;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return bad(absl::StrCat("'", AbslView(text), "': ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    address.loopback = address.loopback && IsLoopback(*at->ai_addr);
  }
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
