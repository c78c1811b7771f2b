// Message ports over UCX: shared memory (posix, cma) within a machine, tcp and RDMA between
// machines.
//
// Two modes exist because they must match at both ends and shared memory is refused with peer error
// handling: "local" without it, where the connection's own socket tells a death, and "remote" with
// it. Each port listens once per mode, and whoever connects chooses by the host's identity. UCX's
// own settings from the environment (UCX_TLS, UCX_NET_DEVICES, ...) hold where they are set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/transport.h"

namespace weft {

struct UcxTransportOptions {
  // Where ports listen for other machines: a host name or an address in numbers. On a loopback
  // address only this machine is served.
  std::string bind_host = "127.0.0.1";
  // What others shall connect to; needed where bind_host is 0.0.0.0 or ::. Empty: bind_host.
  std::string announce_host;
  // More addresses of this machine: their network interfaces carry connections too. By default only
  // the interface of the address that is announced does.
  std::vector<std::string> more_own_addresses;
  // Each port takes the first free one of [first_port, first_port + port_count) for other machines;
  // 0: any. After a restart the system may keep a number busy for a minute, unless
  // UCX_TCP_CM_REUSEADDR=y is in the environment: UCX takes that setting from nowhere else.
  uint16_t first_port = 0;
  uint16_t port_count = 1;
  // As UCX_TLS, and in its place; empty: the environment's, else "posix,cma,self,tcp" within a
  // machine and all but shared memory between machines.
  std::string transports;
};

// Errors: UNIMPLEMENTED in a build without UCX; UNAVAILABLE where UCX does not start or the host
// has no address; INVALID_ARGUMENT for options that contradict each other.
absl::StatusOr<std::unique_ptr<Transport>> NewUcxTransport(const UcxTransportOptions& options);

}  // namespace weft
