// TLS 1.3 with certificates on both sides, for gRPC. Files of the folder are read again when they
// change: connections made from then on use the new ones.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/tls/tls_folder.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}
}  // namespace grpc

namespace weft {

// Any thread may call.
class GrpcTls {
 public:
  // Errors: those of LoadTlsFolder.
  static absl::StatusOr<std::unique_ptr<GrpcTls>> Open(const std::string& folder, TlsRole role);
  ~GrpcTls();

  // As it was read at the start.
  const TlsFolder& folder() const { return folder_; }
  TlsRole role() const { return folder_.facts.role; }

  // For connections to workers: the other side's certificate comes from ca.crt, has that role and
  // names the host that was connected to.
  std::shared_ptr<grpc::ChannelCredentials> ForWorkers() const {
    return ForPeers(TlsRole::kWorker);
  }
  // For connections to processes of that role, checked likewise.
  std::shared_ptr<grpc::ChannelCredentials> ForPeers(TlsRole role) const;
  // For a server: nobody without a certificate from ca.crt, and each role's calls
  // (CheckCall). `refused` hears of calls that were refused, from gRPC's threads.
  std::shared_ptr<grpc::ServerCredentials> ForServer(
      std::function<void(const std::string& why)> refused) const;

 private:
  explicit GrpcTls(TlsFolder folder);

  const TlsFolder folder_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace weft
