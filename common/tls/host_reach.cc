#include "common/tls/host_reach.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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

absl::StatusOr<bool> IsLoopbackHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (!IsLoopback(*at->ai_addr)) return false;
  }
  return true;
}

}  // namespace weft
