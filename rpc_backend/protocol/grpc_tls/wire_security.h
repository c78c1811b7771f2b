// How a process secures its connections to workers, and where it may do without.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/host_address.h"
#include "common/tls/certificate.h"

namespace grpc {
class ChannelCredentials;
}

namespace weft {

class GrpcTls;

struct WireSecurity {
  // Null: none. Outlives what is given this.
  const GrpcTls* tls = nullptr;
  // Plaintext beyond this machine too.
  bool insecure = false;
};

// OK where a connection to that address is encrypted, stays within this machine, or may be
// plaintext. A name that cannot be looked up passes: nobody can connect to it. Errors:
// FAILED_PRECONDITION saying what to do.
absl::Status CheckWireSecurity(const WireSecurity& security, const HostAddress& address);

// For a connection to a process of that role at that address: TLS, or nothing for Unix sockets and
// without TLS. Errors: as above.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsTowards(
    const WireSecurity& security, const HostAddress& address, TlsRole role = TlsRole::kWorker);

}  // namespace weft
