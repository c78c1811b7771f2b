#include "common/transport/own_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Of networks for documentation, RFC 5737 and 3849: nobody has them, so the default route leads
// there.
constexpr const char* kFarAway[] = {"192.0.2.1", "2001:db8::1"};
constexpr const char* kAnyPort = "9";

std::string NumericText(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  const int error = getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text : "";
}

// Where the system would send from; empty if it has no way there.
std::string SourceOf(const addrinfo& target) {
  const int descriptor = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  auto* generic = reinterpret_cast<sockaddr*>(&own);
  const bool found = connect(descriptor, target.ai_addr, target.ai_addrlen) == 0 &&
                     getsockname(descriptor, generic, &length) == 0;
  close(descriptor);
  return found ? NumericText(generic, length) : "";
}

std::string AddressOfAnInterface() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
      const std::string text = NumericText(
          entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      // Link-local ones mean nothing on other machines.
      if (!text.empty() && text.rfind("fe80:", 0) != 0) return text;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> OwnAddressTowards(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), kAnyPort, &hints, &found);
  if (error != 0 || found == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no address for host '", host, "': ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    std::string own = SourceOf(*target);
    if (!own.empty()) return own;
  }
  return absl::UnavailableError(absl::StrCat("no way to host '", host, "'"));
}

std::string OwnAddress() {
  for (const char* host : kFarAway) {
    const absl::StatusOr<std::string> own = OwnAddressTowards(host);
    if (own.ok()) return *own;
  }
  return AddressOfAnInterface();
}

}  // namespace weft
