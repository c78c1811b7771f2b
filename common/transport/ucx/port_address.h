// The address of a UCX port as text: where it listens for processes of its own machine, and where
// for others.
//
//   ucx1 host=<identity> local=127.0.0.1:40001 remote=[2001:db8::1]:40002
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft {

struct PortAddress {
  std::string host_identity;  // of HostIdentity()
  std::string local;          // socket addresses; empty where there is none
  std::string remote;
};

std::string PortAddressText(const PortAddress& address);

// INVALID_ARGUMENT for anything but such a text with at least one socket address.
absl::StatusOr<PortAddress> ParsePortAddress(std::string_view text);

// An IPv4 or IPv6 address with its port.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

// "192.0.2.1:80" or "[2001:db8::1]:80"; numbers only, so it never waits. INVALID_ARGUMENT.
absl::StatusOr<SocketAddress> ParseSocketAddress(std::string_view text);
std::string SocketAddressText(const SocketAddress& address);

uint16_t PortOf(const SocketAddress& address);
void SetPort(SocketAddress& address, uint16_t port);

// The first address of a host name or of an address in numbers, with that port. May ask a name
// server. UNAVAILABLE naming the host.
absl::StatusOr<SocketAddress> ResolveHost(const std::string& host, uint16_t port);

// 0.0.0.0 or ::.
bool IsWildcard(const SocketAddress& address);
bool IsLoopback(const SocketAddress& address);
// The network interface that has the address ("eth0"); empty if none has.
std::string InterfaceOf(const SocketAddress& address);

}  // namespace weft
