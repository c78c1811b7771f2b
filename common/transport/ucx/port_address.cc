#include "common/transport/ucx/port_address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/transport/message_port.h"

namespace weft {
namespace {

constexpr absl::string_view kScheme = "ucx1";

absl::Status BadAddress(const char* reason) {
  return absl::InvalidArgumentError(absl::StrCat("not the address of a UCX port: ", reason));
}

absl::StatusOr<SocketAddress> Resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0 || found == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no address for host '", host, "': ", gai_strerror(error)));
  }
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

const sockaddr* Generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

// The bytes of the IP address alone.
std::string_view AddressBytes(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const char*>(&v4->sin_addr), sizeof v4->sin_addr};
  }
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return {reinterpret_cast<const char*>(&v6->sin6_addr), sizeof v6->sin6_addr};
  }
  return {};
}

}  // namespace

std::string PortAddressText(const PortAddress& address) {
  std::string text = absl::StrCat(kScheme, " host=", address.host_identity);
  if (!address.local.empty()) absl::StrAppend(&text, " local=", address.local);
  if (!address.remote.empty()) absl::StrAppend(&text, " remote=", address.remote);
  return text;
}

absl::StatusOr<PortAddress> ParsePortAddress(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxPortAddressBytes) return BadAddress("too long");
  const std::vector<absl::string_view> words = absl::StrSplit(AbslView(text), ' ');
  if (words[0] != kScheme) return BadAddress("it does not begin with ucx1");
  PortAddress address;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    std::string* value = nullptr;
    if (field.first == "host") value = &address.host_identity;
    if (field.first == "local") value = &address.local;
    if (field.first == "remote") value = &address.remote;
    if (value == nullptr || !value->empty() || field.second.empty()) {
      return BadAddress("a field is unknown, empty or there twice");
    }
    *value = std::string(field.second);
    if (value == &address.host_identity) continue;
    if (!ParseSocketAddress(*value).ok()) return BadAddress("a socket address cannot be read");
  }
  if (address.host_identity.empty()) return BadAddress("no host identity");
  if (address.local.empty() && address.remote.empty()) return BadAddress("no socket address");
  return address;
}

absl::StatusOr<SocketAddress> ParseSocketAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string_view::npos ||
      !absl::SimpleAtoi(AbslView(text.substr(colon + 1)), &port) || port > 65535) {
    return absl::InvalidArgumentError("a socket address ends with a colon and a port");
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || host.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("a socket address begins with an IP address");
  }
  absl::StatusOr<SocketAddress> address =
      Resolve(std::string(host), static_cast<uint16_t>(port), AI_NUMERICHOST);
  if (!address.ok()) {
    return absl::InvalidArgumentError("a socket address begins with an IP address in numbers");
  }
  return address;
}

std::string SocketAddressText(const SocketAddress& address) {
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (getnameinfo(Generic(address), address.length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  if (address.storage.ss_family == AF_INET6) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

uint16_t PortOf(const SocketAddress& address) {
  // The port stands at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

void SetPort(SocketAddress& address, uint16_t port) {
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

absl::StatusOr<SocketAddress> ResolveHost(const std::string& host, uint16_t port) {
  return Resolve(host, port, 0);
}

bool IsWildcard(const SocketAddress& address) {
  const std::string_view bytes = AddressBytes(Generic(address));
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

bool IsLoopback(const SocketAddress& address) {
  const std::string_view bytes = AddressBytes(Generic(address));
  if (bytes.size() == sizeof(in_addr)) return bytes[0] == 127;
  return bytes.size() == sizeof(in6_addr) && bytes.find_first_not_of('\0') == bytes.size() - 1 &&
         bytes.back() == 1;
}

std::string InterfaceOf(const SocketAddress& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string name;
  for (const ifaddrs* entry = all; entry != nullptr && name.empty(); entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != address.storage.ss_family) {
      continue;
    }
    if (AddressBytes(entry->ifa_addr) == AddressBytes(Generic(address))) name = entry->ifa_name;
  }
  freeifaddrs(all);
  // 127.0.0.2 belongs to the interface of 127.0.0.1 without being listed.
  return name.empty() && IsLoopback(address) ? "lo" : name;
}

}  // namespace weft
