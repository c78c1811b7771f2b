#include "common/base/host_address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kMaxHostBytes = 253;
constexpr size_t kMaxSocketPathBytes = 107;  // of struct sockaddr_un
constexpr std::string_view kSocketPrefix = "unix:";

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", EscapedText(text, 300), "': ", AbslView(why),
                                                 "; write HOST:PORT, [IPV6]:PORT or unix:PATH"));
}

absl::StatusOr<int32_t> ParsePort(std::string_view text, std::string_view digits, int32_t least) {
  int32_t port = 0;
  const bool number = digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number || !absl::SimpleAtoi(AbslView(digits), &port) || port < least || port > 65535) {
    return Bad(text, StdView(absl::StrCat("the port is not a number from ", least, " to 65535")));
  }
  return port;
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

// With an optional zone: "fe80::1%eth0".
bool IsIpv6(std::string_view host) {
  const size_t zone = host.find('%');
  if (zone != std::string_view::npos) {
    const std::string_view name = host.substr(zone + 1);
    if (name.empty() || !std::all_of(name.begin(), name.end(), IsHostCharacter)) return false;
  }
  in6_addr address;
  return inet_pton(AF_INET6, std::string(host.substr(0, zone)).c_str(), &address) == 1;
}

absl::StatusOr<HostAddress> ParseSocket(std::string_view text) {
  HostAddress address;
  address.socket_path = std::string(text.substr(kSocketPrefix.size()));
  if (address.socket_path.empty() || address.socket_path.size() > kMaxSocketPathBytes ||
      address.socket_path.find('\0') != std::string::npos) {
    return Bad(text, "a path of a socket has 1 to 107 bytes");
  }
  return address;
}

}  // namespace

std::string HostAddress::Text() const {
  if (!socket_path.empty()) return absl::StrCat(AbslView(kSocketPrefix), socket_path);
  const bool brackets = host.find(':') != std::string::npos;
  return absl::StrCat(brackets ? "[" : "", host, brackets ? "]" : "", ":", port);
}

absl::StatusOr<HostAddress> ParseHostAddress(std::string_view text, int32_t default_port,
                                             int32_t least_port) {
  if (absl::StartsWith(AbslView(text), AbslView(kSocketPrefix))) return ParseSocket(text);
  HostAddress address;
  address.port = default_port;
  std::string_view host = text;
  if (!text.empty() && text[0] == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return Bad(text, "']' is missing");
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!IsIpv6(host)) return Bad(text, "no IPv6 address stands between [ and ]");
    if (!rest.empty() && rest[0] != ':') return Bad(text, "a colon and a port follow the ]");
    if (!rest.empty()) {
      ASSIGN_OR_RETURN(address.port, ParsePort(text, rest.substr(1), least_port));
    }
    address.host = std::string(host);
    return address;
  }
  if (IsIpv6(text)) {
    address.host = std::string(text);
    return address;
  }
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    ASSIGN_OR_RETURN(address.port, ParsePort(text, text.substr(colon + 1), least_port));
    host = text.substr(0, colon);
  }
  if (host.empty()) return Bad(text, "the host is missing");
  if (host.size() > kMaxHostBytes) return Bad(text, "the host name is too long");
  for (const char c : host) {
    if (!IsHostCharacter(c))
      return Bad(text, "the host name has a character that names cannot have");
  }
  address.host = std::string(host);
  return address;
}

}  // namespace weft
