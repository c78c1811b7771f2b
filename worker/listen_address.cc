#include "worker/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

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
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(AbslView(flag), " ", AbslView(text), ": ", AbslView(why)));
  };
  ListenAddress parsed;
  if (absl::StartsWith(AbslView(text), "unix:")) {
    parsed.loopback = true;
    return parsed;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad("want HOST:PORT or unix:PATH");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  int32_t number = 0;
  if (!absl::SimpleAtoi(AbslView(port), &number) || number < 0 || number > 65535) {
    return bad("the port is not a number from 0 to 65535");
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("write an IPv6 address in brackets");
  }
  parsed.host = std::string(host);
  parsed.port = std::string(port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parsed.host.c_str(), parsed.port.c_str(), &hints, &found);
  if (error != 0) return bad(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  parsed.loopback = true;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    parsed.loopback = parsed.loopback && IsLoopback(*at->ai_addr);
  }
  return parsed;
}

bool IsWildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace weft
