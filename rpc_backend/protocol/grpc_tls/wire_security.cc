#include "rpc_backend/protocol/grpc_tls/wire_security.h"

#include <grpcpp/security/credentials.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tls/host_reach.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

namespace weft {

absl::Status CheckWireSecurity(const WireSecurity& security, const HostAddress& address) {
  if (security.tls != nullptr || security.insecure || address.host.empty()) return absl::OkStatus();
  if (IsLoopbackHost(address.host).value_or(true)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      address.Text(), " is another machine, and nothing would be encrypted: pass --tls DIR ('weft ",
      "certs --help' says how to make one), or --insecure on a network that you trust"));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsTowards(
    const WireSecurity& security, const HostAddress& address, TlsRole role) {
  RETURN_IF_ERROR(CheckWireSecurity(security, address));
  if (security.tls != nullptr && address.socket_path.empty()) return security.tls->ForPeers(role);
  return grpc::InsecureChannelCredentials();
}

}  // namespace weft
