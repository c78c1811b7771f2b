// TLS 1.3 with certificates on both sides, for gRPC. Files of the folder are read again every
// second: connections made from then on use the new ones, once those are usable together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/tls/certificate_watch.h"
#include "common/tls/tls_folder.h"
#include "rpc_backend/protocol/grpc_tls/key_files.h"

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
  // `logger`, which outlives it, hears what a CertificateWatch has to say; none where the caller
  // has one. Errors: those of LoadTlsFolder and KeyFiles; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<GrpcTls>> Open(const std::string& folder, TlsRole role,
                                                       Logger* logger = nullptr);
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
  GrpcTls(TlsFolder folder, std::shared_ptr<KeyFiles> files, Logger* logger);
  void Follow();

  const TlsFolder folder_;
  const std::shared_ptr<KeyFiles> files_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  const SystemClock clock_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the thread:
  TlsFolder current_;
  std::unique_ptr<CertificateWatch> watch_;

  std::thread thread_;
};

}  // namespace weft
